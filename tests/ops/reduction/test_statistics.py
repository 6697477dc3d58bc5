"""Quantiles: values, memory and history of the result."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sample_tests import SampleTests
from samples import WITH_NAN, Samples, call, inf

import flambeau

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")
arrays = hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4),
                    elements=st.integers(-8, 8).map(float))


@given(arrays, st.data())
@settings(max_examples=80, deadline=None)
def test_quantiles_are_numpys_and_no_views(array, data):
    dim = data.draw(st.one_of(st.none(), st.integers(-array.ndim, array.ndim - 1)))
    points = data.draw(st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]),
                                 st.lists(st.sampled_from([0.25, 0.75]), min_size=1, max_size=3)))
    keepdim, method = data.draw(st.booleans()), data.draw(st.sampled_from(METHODS[:4]))
    q = points if isinstance(points, float) else flambeau.tensor(points, dtype=flambeau.float64)
    expected = np.quantile(array, points, dim, method=method, keepdims=keepdim)
    for function in (flambeau.quantile, flambeau.nanquantile):
        result = function(flambeau.tensor(array), q, dim, keepdim, interpolation=method)
        np.testing.assert_allclose(result.numpy(), expected)
        assert result._base is None


@pytest.mark.parametrize("dim, keepdim, strides", [
    (None, True, (1, 2, 2)), (0, False, (1, 2)), (0, True, (1, 6, 2)), (-1, True, (1, 2, 2))])


def test_several_quantiles_lie_beside_each_other(dim, keepdim, strides):
    x = flambeau.arange(6.0).reshape(2, 3)
    assert x.quantile(flambeau.tensor([0.2, 0.7]), dim, keepdim).stride() == strides


def test_the_history_of_a_quantile():
    x = flambeau.arange(6.0).requires_grad_()
    one = x.quantile(0.4, 0)
    assert one.grad_fn.name() == "SqueezeBackward4" and one._version == 2
    one.backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, 1, 0, 0, 0])
    slices = flambeau.func.vmap(lambda row: row.quantile(0.5, 0))(flambeau.arange(6.0).view(2, 3))
    assert slices.tolist() == [1, 4]


def test_types_come_before_dimensions():
    for x in (flambeau.zeros(0, dtype=flambeau.bool), flambeau.zeros(3, dtype=flambeau.int64)):
        for dim in (0, 4):
            with pytest.raises(RuntimeError, match="std and var only support floating point"):
                x.var(dim)


# ---- samples ------------------------------------------------------------------------------------

family = Samples()

for _name in ("var", "std", "var_mean", "std_mean"):
    @family(_name)
    def _(r):
        x = r.real(2, 3)
        return [call(x), call(x, 1), call(x, 1, correction=0), call(x, (0, 1), keepdim=True),
                call(x, False), call(x, 0, True, True), call(r.complex(2, 3), 1),
                call(x, dim=1, correction=0.5), call(np.ones((2, 3)), 1).but(smooth=False),
                call(r.real(1)).but(smooth=False)]


@family("linalg.vector_norm")
def _(r):
    calls = [call(r.real(2, 3), p) for p in (2, 1, inf, -inf, 0, 3, 0.5, 1.5, -1)]
    calls += [call(r.real(2, 3), 2, 1), call(r.real(2, 3), 3, 0, True), call(r.complex(2, 3), 2),
              call(r.complex(2, 3), 1, 1), call(r.complex(3), 3), call(r.real(), 2)]
    zero = np.array([[0.0, 0.0], [0.0, 1.0]])
    return calls + [call(zero, p, 1).but(smooth=False) for p in (2, 1, inf, 3, 1.5, 0.5)]


@family("norm")
def _(r):
    return [call(r.real(2, 3)), call(r.real(2, 3), 1), call(r.real(2, 3), "fro", 1),
            call(r.real(2, 3), 3, 0, True), call(r.real(2, 3), dtype=np.dtype("float64"))]


@family("dist")
def _(r):
    return [call(r.real(2, 3), r.real(2, 3)), call(r.real(2, 3), r.real(3), 1),
            call(r.real(3), r.real(3), 3.5), call(np.ones(2), np.ones(2)).but(smooth=False)]


@family("renorm")
def _(r):
    return [call(r.real(2, 3), 2, 0, 1.0), call(r.real(2, 3), 1, 1, 2.5),
            call(r.real(2, 3, 2), 2, 1, 100.0)]


@family("cov")
def _(r):
    return [call(r.real(3, 4)), call(r.real(5)), call(r.real(3, 4), correction=0),
            call(r.real(3, 4), fweights=r.integers(1, 4, 4)),
            call(r.real(3, 4), aweights=r.positive(4)),
            call(r.real(3, 4), fweights=r.integers(1, 4, 4), aweights=r.positive(4)),
            call(r.complex(2, 4)), call(r.real()).but(smooth=False)]


@family("corrcoef")
def _(r):
    return [call(r.real(3, 4)), call(r.real(5)), call(r.complex(2, 4))]


for _name in ("quantile", "nanquantile"):
    @family(_name)
    def _(r):
        x = r.distinct(3, 4)
        calls = [call(x, 0.3), call(x, 0.6, 1), call(x, 0.6, 0, True), call(x, 0.25, keepdim=True),
                 call(x, np.array([0.2, 0.9]), 1), call(x, np.array([0.2, 0.9]), 0, True),
                 call(x, np.array([0.2, 0.9])), call(r.real(), 0.5),
                 call(WITH_NAN, 0.5, 1).but(smooth=False)]
        return calls + [call(x, 0.3, 1, interpolation=way)
                        for way in ("lower", "higher", "nearest", "midpoint")]


@family("frobenius_norm")
def _(r):
    return [call(r.real(2, 3), 1)]


family.unbatched = ("cov",)


class TestSamples(SampleTests):
    family = family


@given(st.sampled_from([flambeau.complex64, flambeau.complex128]), st.sampled_from([None, 0, 1]),
       st.sampled_from([float("inf"), -float("inf")]), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_gradients_of_extreme_moduli_go_to_the_extreme_elements(dtype, dim, order, seed):
    r = np.random.default_rng(seed)
    x = flambeau.tensor(r.normal(size=(3, 9)) + 1j * r.normal(size=(3, 9)))
    x = x.to(dtype).requires_grad_()
    norm = flambeau.linalg.vector_norm(x, order, dim=dim)
    norm.sum().backward()
    assert (x.grad.abs() > 0.5).sum() == norm.numel()
    assert abs(x.grad.abs().sum().item() - norm.numel()) < 1e-4


@pytest.mark.parametrize("ord", [1, 2, 3])
def test_tangents_of_norms_of_zero_are_zero(ord):
    x = flambeau.zeros(3)
    assert flambeau.func.jvp(lambda x: flambeau.norm(x, ord), (x,), (x + 1,))[1] == 0


@given(st.lists(st.sampled_from([1.0, -2.0, inf, -inf]), min_size=1, max_size=5))
def test_infinite_means_beside_variances(values):
    """The mean is that of Welford's updates, m + (x - m) / n."""
    mean = 0.0
    for n, value in enumerate(values, 1):
        mean += (value - mean) / n
    for dtype in (flambeau.float64, flambeau.float16):
        x = flambeau.tensor([values, [0.0] * len(values)], dtype=dtype)
        for found in (flambeau.var_mean(x[0], correction=0)[1],
                      flambeau.std_mean(x, 1, correction=0)[1][0],
                      flambeau.var_mean(x.T, 0, correction=0)[1][0]):
            np.testing.assert_allclose(float(found), mean, rtol=1e-2)
