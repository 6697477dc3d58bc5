import numpy as np
import pytest

from flambeau.kernels.network import resampling

MODES = [
    ("nearest", False), ("nearest-exact", False), ("bilinear", False), ("bilinear", True),
    ("bicubic", False), ("bicubic", True), ("area", False),
]  # fmt: skip


@pytest.mark.parametrize("mode, aligned", MODES)
@pytest.mark.parametrize("size", [(9, 4), (3, 11), (5, 6)])
@pytest.mark.parametrize("antialias", [False, True])
def test_interpolation_is_linear(normal, mode, aligned, size, antialias):
    if antialias and not mode.startswith("bi"):
        return
    x = normal((2, 3, 5, 6))
    how = mode, aligned, None, antialias
    y = resampling.interpolate(x, size, *how)
    assert y.shape == (2, 3, *size) and not np.shares_memory(x, y)
    g = normal(y.shape)
    back = resampling.interpolate_backward(g, x.shape, *how)
    np.testing.assert_allclose(np.sum(back * x), np.sum(g * y))
    flat = resampling.interpolate(np.ones_like(x), size, *how)
    np.testing.assert_allclose(flat, 1)


def test_a_ramp_stays_a_ramp():
    x = np.arange(5.0)[None, None]
    found = resampling.interpolate(x, (9,), "linear", True)
    np.testing.assert_allclose(found[0, 0], np.arange(9) / 2)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_grid_of_the_pixels(normal, mode):
    x = normal((1, 2, 4, 5))
    rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
    grid = np.stack([columns, rows], -1)[None]
    np.testing.assert_allclose(resampling.grid_sample(x, grid, mode, "zeros", True), x, atol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [False, True])
def test_gradients_of_sampling(normal, derivative, mode, padding, aligned):
    x, grid = normal((1, 2, 4, 5)), np.random.default_rng(1).uniform(-1.4, 1.4, (1, 3, 2, 2))
    how = mode, padding, aligned
    g = normal((1, 2, 3, 2))
    gx, g_grid = resampling.grid_sample_backward(g, x, grid, *how)
    value = np.sum(g * resampling.grid_sample(x, grid, *how))
    np.testing.assert_allclose(np.sum(gx * x), value)
    expected = derivative(lambda p: np.sum(g * resampling.grid_sample(x, p, *how)), grid)
    np.testing.assert_allclose(g_grid, expected, atol=1e-6)


def test_volumes(normal, derivative):
    x, grid = normal((1, 2, 3, 4, 5)), np.random.default_rng(1).uniform(-1, 1, (1, 2, 1, 2, 3))
    g = normal((1, 2, 2, 1, 2))
    gx, g_grid = resampling.grid_sample_backward(g, x, grid)
    np.testing.assert_allclose(np.sum(gx * x), np.sum(g * resampling.grid_sample(x, grid)))
    expected = derivative(lambda p: np.sum(g * resampling.grid_sample(x, p)), grid)
    np.testing.assert_allclose(g_grid, expected, atol=1e-6)


def test_points_that_are_not_numbers():
    x, grid = np.ones((1, 1, 3, 3)), np.full((1, 1, 2, 2), np.nan)
    for version in (resampling.grid_sample, resampling.grid_sample.reference):
        assert not version(x, grid).any()


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("dims", [2, 3])
def test_sampling_mostly_outside(normal, mode, dims):
    """Of most points nothing is computed; the few that meet the image are as they were alone."""
    x, g = normal((2, 3, 4, 5, 6)[:2 + dims]), normal((2, 3, 9, 8, 7)[:2 + dims])
    grid = np.random.default_rng(1).uniform(-4, 4, (*(2, 9, 8, 7)[:1 + dims], dims))
    for version in (resampling.grid_sample, resampling.grid_sample.reference):
        found = version(x, grid, mode)
        dead = (abs(grid) > 3).any(-1)[:, None]
        assert not found[np.broadcast_to(dead, found.shape)].any() and found.any()
        alive = int(np.argmax(found[1, 0].ravel() != 0))
        alone = version(x[1:], grid[1].reshape(-1, dims)[alive].reshape(1, *[1] * dims, dims), mode)
        np.testing.assert_allclose(alone.ravel(), found[1].reshape(3, -1)[:, alive], atol=1e-12)
    np.testing.assert_allclose(found, resampling.grid_sample(x, grid, mode), atol=1e-12)
    for a, b in zip(resampling.grid_sample_backward(g, x, grid, mode),
                    resampling.grid_sample_backward.reference(g, x, grid, mode)):
        np.testing.assert_allclose(a, b, atol=1e-12)
