"""Running products: the gradient where some factors are zero."""

import numpy as np
import pytest

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
