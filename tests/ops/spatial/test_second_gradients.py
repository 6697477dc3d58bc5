"""Gradients of what picks or averages elements do not depend on the input, and can nevertheless be
differentiated by it: the second gradient is zero."""
import pytest

import flambeau
import flambeau.nn.functional as F

target = flambeau.tensor([[1, 0, 1, 1]])
OPS = {
    "avg_pool1d": lambda x: F.avg_pool1d(x[0], 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "max_pool1d": lambda x: F.max_pool1d(x[0], 2),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "fractional_max_pool2d": lambda x: F.fractional_max_pool2d(x, 2, 2),
    "reflect": lambda x: F.pad(x, (1, 1, 1, 1), "reflect"),
    "replicate": lambda x: F.pad(x, (1, 1, 1, 1), "replicate"),
    "nll_loss": lambda x: F.nll_loss(x[:, :, 0], target),
}


@pytest.mark.parametrize("name", OPS)
def test_the_second_gradient_by_the_input_is_zero(name):
    x = flambeau.arange(32.0).reshape(1, 2, 4, 4).requires_grad_()
    y = OPS[name](x)
    weight = flambeau.ones_like(y).requires_grad_()
    first, = flambeau.autograd.grad(y, x, weight, create_graph=True)
    second, by_weight = flambeau.autograd.grad(first.square().sum(), (x, weight))
    assert second.shape == x.shape and not second.any()
    assert by_weight.any()


@pytest.mark.parametrize("by_input", [True, False])
def test_one_argument_of_grid_sample_has_second_gradients_without_the_other(by_input):
    x = flambeau.arange(16.0).reshape(1, 1, 4, 4).square().requires_grad_(by_input)
    grid = flambeau.tensor([[[[0.1, 0.2], [-0.3, 0.4]]]]).requires_grad_(not by_input)
    y = F.grid_sample(x, grid, align_corners=True)
    weight = flambeau.ones_like(y).requires_grad_()
    wanted = x if by_input else grid
    first, = flambeau.autograd.grad(y, wanted, weight, create_graph=True)
    found, = flambeau.autograd.grad(first.sum(), weight)
    step = flambeau.ones_like(wanted)
    with flambeau.no_grad():                    # along a vector of ones the difference is exact
        if by_input:
            expected = F.grid_sample(x + step, grid, align_corners=True) - y
        else:
            expected = (F.grid_sample(x, grid + 1e-2 * step, align_corners=True)
                        - F.grid_sample(x, grid - 1e-2 * step, align_corners=True)) / 2e-2
    flambeau.testing.assert_close(found, expected.detach(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name, groups", [("conv1d", 1), ("conv1d", 2), ("conv_transpose1d", 1),
                                          ("conv_transpose1d", 2)])
def test_the_second_gradient_by_a_weight_has_its_channels_swapped(name, groups):
    f = getattr(flambeau.nn.functional, name)
    x = flambeau.randn(2, 4, 5, dtype=flambeau.float64, requires_grad=True)
    w = flambeau.randn(4, 4 // groups, 3, dtype=flambeau.float64, requires_grad=True)
    y = f(x, w, groups=groups)
    v = flambeau.randn_like(y, requires_grad=True)
    by_x, = flambeau.autograd.grad(y, x, v, create_graph=True)
    second, = flambeau.autograd.grad(by_x, w, flambeau.randn_like(by_x))
    assert second.stride() == (3, 12, 1)
    assert flambeau.autograd.gradgradcheck(lambda x, w: f(x, w, groups=groups), (x, w))
