"""Views as another type, and new dimensions by index."""

import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau


@pytest.mark.parametrize("shape", [(4,), (2, 4), (1, 3, 4)])
@pytest.mark.parametrize("source, target", [
    (flambeau.float32, flambeau.int32), (flambeau.float64, flambeau.float32),
    (flambeau.int16, flambeau.float64), (flambeau.complex64, flambeau.float32),
    (flambeau.uint8, flambeau.int16), (flambeau.float16, flambeau.bfloat16)])


def test_bytes_are_read_as_another_type(shape, source, target):
    x = flambeau.arange(int(np.prod(shape))).reshape(shape).to(source)
    y = x.view(target)
    assert y.dtype is target and y.data_ptr() == x.data_ptr()
    assert y.numel() * y.itemsize == x.numel() * x.itemsize
    assert y.contiguous().view(source).equal(x)
    y.zero_()
    assert not x.any() and x._version == 1


def test_what_cannot_be_read_as_another_type():
    with pytest.raises(RuntimeError, match=r"self.dim\(\) cannot be 0 to view Float as Double"):
        flambeau.tensor(1.0).view(flambeau.float64)
    with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 2"):
        flambeau.ones(3).view(flambeau.float64)
    with pytest.raises(RuntimeError, match=r"self.stride\(-1\) must be 1"):
        flambeau.ones(2, 4).t().view(flambeau.float64)


def test_a_new_dimension_by_index():
    x = flambeau.ones(2, 3, requires_grad=True)
    y = x[..., None]
    assert y.shape == (2, 3, 1) and y._base is x
    (y * 2).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


# ---- samples ------------------------------------------------------------------------------------

family = Samples()

for _name, _args in {
    "as_strided": [((2, 2), (1, 2)), ((3,), (1,), 1)],
}.items():
    @family(_name)
    def _(r, given=_args):
        return [call(r.real(2, 3), *args) for args in given]


@family("as_strided_scatter")
def _(r):
    # PyTorch's gradient by the first argument is the complement of what it should be
    return [call(r.real(2, 3), r.real(2, 2), (2, 2), (1, 2)).but(constant=(0,))]


family.unbatched = ("as_strided",)
family.contiguous = ("as_strided", "as_strided_scatter")


class TestSamples(SampleTests):
    family = family
