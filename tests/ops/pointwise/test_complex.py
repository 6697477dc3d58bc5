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
