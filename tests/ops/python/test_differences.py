"""Integrals by the trapezoidal rule."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

arrays = hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4),
                    elements=st.integers(-8, 8).map(float))


@given(arrays, st.data())
@settings(max_examples=60, deadline=None)
def test_integrals_are_numpys(array, data):
    dim = data.draw(st.integers(-array.ndim, array.ndim - 1))
    dx = data.draw(st.sampled_from([1, 2.0, 0.5]))
    y = flambeau.tensor(array)
    np.testing.assert_allclose(flambeau.trapezoid(y, dx=dx, dim=dim).numpy(),
                               np.trapezoid(array, dx=dx, axis=dim), atol=1e-12)
    x = np.linspace(0, 2, array.shape[dim]) ** 2
    np.testing.assert_allclose(flambeau.trapezoid(y, flambeau.tensor(x), dim=dim).numpy(),
                               np.trapezoid(array, x, axis=dim), atol=1e-12)
    whole = flambeau.cumulative_trapezoid(y, flambeau.tensor(x), dim=dim)
    if array.shape[dim] > 1:
        np.testing.assert_allclose(whole.select(dim, -1).numpy(),
                                   np.trapezoid(array, x, axis=dim), atol=1e-12)


def test_an_infinite_sample_at_both_ends_counts_half():
    y = flambeau.tensor([float("inf"), 1.0, 2.0])
    assert flambeau.trapezoid(y).isnan()            # inf - inf / 2, as PyTorch computes it


def test_nothing_to_integrate():
    assert flambeau.trapezoid(flambeau.zeros(0, 2, dtype=flambeau.int64), dim=0).tolist() == [0, 0]


def test_steps_are_real_numbers():
    with pytest.raises(RuntimeError, match="we only support dx as a real number"):
        flambeau.trapezoid(flambeau.ones(3), dx=1j)


def test_what_is_joined_to_differences_has_their_shape():
    x = flambeau.zeros(2, 3)
    assert flambeau.diff(x, prepend=flambeau.ones(2, 1)).shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"diff expects the shape of tensor to prepend or append "
                       r"to match .* input.size\(0\) = 2, but got tensor.size\(0\) = 3"):
        flambeau.diff(x, append=flambeau.ones(3, 1))


# ---- samples ------------------------------------------------------------------------------------

family = Samples()


@family("diff")
def _(r):
    return [call(r.real(2, 4)), call(r.real(4, 2), 2, 0), call(r.real(3), 5),
            call(r.real(2, 3), prepend=r.real(2, 1), append=r.real(2, 2)), call(r.bools(5)),
            call(r.integers(0, 9, 5)), call(r.real(3), 0), call(r.complex(3))]


for _name in ("trapezoid", "trapz"):
    @family(_name)
    def _(r):
        return [call(r.real(2, 4)), call(r.real(2, 4), dx=0.5, dim=0),
                call(r.real(2, 4), r.real(4)), call(r.real(2, 4), r.real(2, 4)),
                call(r.real(2, 4), r.real(2), dim=0), call(r.real(1))]


@family("cumulative_trapezoid")
def _(r):
    return [call(r.real(2, 4)), call(r.real(2, 4), dx=0.5, dim=0), call(r.real(2, 4), r.real(4)),
            call(r.real(2, 4), r.real(2, 4))]


@family("gradient")
def _(r):
    return [call(r.real(5)), call(r.real(3, 4)), call(r.real(3, 4), dim=1, spacing=2.0),
            call(r.real(3, 4), spacing=[2.0, 0.5]), call(r.real(5), edge_order=2),
            call(r.real(4), spacing=[np.array([0.0, 1.0, 4.0, 4.5])]),
            call(r.real(4), spacing=[np.array([0.0, 1.0, 4.0, 4.5])], edge_order=2)]


class TestSamples(SampleTests):
    family = family
