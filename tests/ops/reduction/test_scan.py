"""Running products: the gradient where some factors are zero."""

import numpy as np
import pytest
from sample_tests import SampleTests
from samples import TIES, WITH_NAN, Samples, call

import flambeau


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("shape, dim", [((4, 9), 1), ((9, 4), 0), ((3, 5, 2), 1), ((7,), 0),
                                        ((3, 0), 1)])


def test_cumprod_gradient_with_zeros(dtype, shape, dim):
    random = np.random.default_rng(0)
    x = random.integers(-2, 3, shape).astype(dtype)
    if dtype == "complex128":
        x += 1j * random.integers(-1, 2, shape)
    grad = random.standard_normal(shape).astype(dtype)
    leaf = flambeau.tensor(x, requires_grad=True)
    (found,) = flambeau.autograd.grad(leaf.cumprod(dim), leaf, flambeau.tensor(grad))
    want = np.zeros_like(x)
    moved, into = np.moveaxis(x, dim, -1), np.moveaxis(want, dim, -1)
    for i in range(shape[dim]):                 # the products without element i, from there on
        others = moved.copy()
        others[..., i] = 1
        share = np.moveaxis(grad, dim, -1) * np.cumprod(others, -1).conj()
        into[..., i] = share[..., i:].sum(-1)
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-5, atol=1e-5)


# ---- samples ------------------------------------------------------------------------------------

family = Samples()


@family("cumsum")
def _(r):
    return [call(r.real(2, 3), 1), call(r.real(2, 3), 0), call(r.real(), 0), call(r.real(0, 2), 0),
            call(r.complex(3), 0), call(r.integers(0, 5, 4), 0), call(r.bools(4), 0),
            call(r.integers(0, 5, 4), 0, dtype=np.dtype("float64"))]


@family("cumprod")
def _(r):
    x = r.real(2, 4)
    calls = [call(x, 1), call(x, 0), call(r.real(), 0), call(r.complex(3), 0),
             call(r.integers(1, 5, 4), 0)]
    for zeros in ([1], [0, 2]):
        y = x.copy()
        y[1, zeros] = 0
        calls += [call(y, 1), call(y, 0)]
    return calls


@family("logcumsumexp")
def _(r):
    return [call(r.real(2, 3), 1), call(r.real(2, 3) * 5, 0), call(r.real(), 0),
            call(r.complex(3), 0), call(np.array([800.0, -900.0, 800.0]), 0).but(smooth=False)]


for _name in ("cummax", "cummin"):
    @family(_name)
    def _(r):
        return [call(r.distinct(2, 4), 1), call(r.distinct(3, 2), 0), call(r.real(), 0),
                call(TIES, 1).but(smooth=False), call(WITH_NAN, 1).but(smooth=False),
                call(r.integers(0, 5, 6), 0), call(r.bools(4), 0), call(r.real(0, 2), 1)]


class TestSamples(SampleTests):
    family = family


def test_running_results_lie_in_rows():
    x = flambeau.ones(2, 3).t()
    assert x.cumsum(0).stride() == (2, 1)
    assert x.cumsum(0, dtype=flambeau.float64).stride() == (2, 1)
    assert x.cumprod(0, dtype=flambeau.float64).stride() == (2, 1)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("scan", ["cumprod", "logcumsumexp"])
def test_first_and_second_gradients_lie_row_by_row(scan, dim):
    x = flambeau.randn(2, 3, 4, dtype=flambeau.float64)
    x[1, 2, 0] = 0                          # where the product of the others has its own formula
    x.requires_grad_()
    grad = flambeau.ones(2, 3, 4, dtype=flambeau.float64, requires_grad=True)
    first, = flambeau.autograd.grad(getattr(x, scan)(dim), x, grad, create_graph=True)
    for found in (first, *flambeau.autograd.grad(first, (x, grad), flambeau.ones_like(first))):
        assert found.stride() == (12, 4, 1)
