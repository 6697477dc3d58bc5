"""Samples of the ops of `flambeau/ops/pointwise/complex.py`."""
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

family = Samples()


@family("complex")
def _(r):
    return [call(r.real(2, 3), r.real(2, 3)), call(r.real(2, 1), r.real(3)),
            call(r.real(), r.real())]


@family("polar")
def _(r):
    # of a negative length PyTorch's gradient has the wrong sign
    return [call(abs(r.real(2, 3)), r.real(2, 3)), call(abs(r.real(3)), r.real(2, 1))]


@family("conj_physical")
def _(r):
    return [call(r.complex(2, 3)), call(r.complex()), call(r.complex(0, 2)), call(r.real(3))]


@family("real")
def _(r):
    return [call(r.complex(2, 3)), call(r.real(3))]


@family("imag")
def _(r):
    return [call(r.complex(2, 3))]


@family("view_as_real")
def _(r):
    return [call(r.complex(2, 3))]


@family("view_as_complex")
def _(r):
    return [call(r.real(3, 2))]


family.contiguous = ("view_as_complex",)


class TestSamples(SampleTests):
    family = family


def test_strides_of_dimensions_of_one_do_not_matter():
    assert flambeau.view_as_complex(flambeau.zeros(1, 3)[:, :2]).shape == (1,)
    with pytest.raises(RuntimeError, match="stride divisible by 2"):
        flambeau.view_as_complex(flambeau.zeros(2, 3)[:, :2])


def test_the_conjugate_of_a_real_tensor_is_itself():
    """Memory of its own is made only where there is a difference."""
    for x in (flambeau.ones(2), flambeau.ones(2, requires_grad=True), flambeau.arange(3)):
        assert flambeau.conj_physical(x) is x and x.conj_physical() is x
        if not x.requires_grad:
            assert x.conj_physical_() is x
    out = flambeau.zeros(2)
    assert flambeau.conj_physical(flambeau.ones(2), out=out) is out and out.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        flambeau.conj_physical(flambeau.ones(2), out=out.double())
    sparse = flambeau.eye(2).to_sparse()
    assert sparse.conj_physical() is sparse
    z = flambeau.tensor([1 + 2j], requires_grad=True)
    assert z.conj_physical().grad_fn.name() == "ConjPhysicalBackward0"
    assert (z * 1).conj_physical_().grad_fn.name() == "ConjPhysicalBackward1"
