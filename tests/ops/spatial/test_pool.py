"""Layers that `flambeau/ops/spatial/pool.py` computes."""
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau
from flambeau.nn import functional as F

cases = Cases()
simple = cases.simple
simple("max_pool1d", lambda t, F, x: F.max_pool1d(x, 3, 2, 1), (2, 3, 8), apart=True)
simple("max_pool2d", lambda t, F, x: F.max_pool2d(x, 2), (2, 2, 4, 6), apart=True)
simple("max_pool2d_geometry", lambda t, F, x: F.max_pool2d(x, (3, 2), (2, 1), 1, (1, 2), True),
       (1, 2, 6, 7), apart=True)
simple("max_pool2d_unbatched", lambda t, F, x: F.max_pool2d(x, 2, 1), (2, 4, 4), apart=True)
simple("max_pool3d", lambda t, F, x: F.max_pool3d(x, 2), (1, 2, 4, 4, 4), apart=True)
simple("avg_pool1d", lambda t, F, x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 8))
simple("avg_pool2d", lambda t, F, x: F.avg_pool2d(x, (2, 3), 2, 1), (2, 2, 5, 6))
simple("avg_pool2d_ceil", lambda t, F, x: F.avg_pool2d(x, 2, 2, 1, True, False), (1, 2, 5, 5))
simple("avg_pool2d_divisor", lambda t, F, x: F.avg_pool2d(x, 2, divisor_override=3), (1, 2, 4, 4))
simple("avg_pool3d", lambda t, F, x: F.avg_pool3d(x, 2, 1), (1, 2, 3, 3, 3))
simple("lp_pool1d", lambda t, F, x: F.lp_pool1d(x, 2, 2), (2, 2, 6))
simple("lp_pool2d", lambda t, F, x: F.lp_pool2d(x, 3, (2, 1)), (1, 2, 4, 4), low=0.1, high=2)
simple("lp_pool3d", lambda t, F, x: F.lp_pool3d(x, 2, 2), (1, 1, 4, 4, 4))


@cases("fractional_max_pool2d")
def _(torch, make):
    x, samples = make(2, 2, 7, 7, apart=True), make(2, 2, 2, low=0, high=1, grad=False)
    return torch.nn.functional.fractional_max_pool2d(x, 2, 3, _random_samples=samples)


@cases("fractional_max_pool3d")
def _(torch, make):
    x, samples = make(1, 2, 5, 5, 5, apart=True), make(1, 2, 3, low=0, high=1, grad=False)
    return torch.nn.functional.fractional_max_pool3d(x, 2, 3, _random_samples=samples)


@cases("max_unpool2d")
def _(torch, make):
    F = torch.nn.functional
    values, indices = F.max_pool2d(make(2, 2, 4, 6, apart=True), 2, return_indices=True)
    return F.max_unpool2d(values * values, indices, 2)


@cases("max_unpool1d")
def _(torch, make):
    F = torch.nn.functional
    values, indices = F.max_pool1d(make(2, 2, 8, apart=True), 2, return_indices=True)
    return F.max_unpool1d(values, indices, 2, output_size=(9,))


@cases("max_unpool3d")
def _(torch, make):
    F = torch.nn.functional
    values, indices = F.max_pool3d(make(1, 1, 4, 4, 4, apart=True), 2, return_indices=True)
    return F.max_unpool3d(values, indices, 2)


class TestLayers(LayerTests):
    cases = cases


@pytest.mark.parametrize("pool", [
    lambda x: F.max_pool1d(x[..., 0, 0], 2), lambda x: F.max_pool2d(x[..., 0], 2),
    lambda x: F.max_pool3d(x, 2), lambda x: F.avg_pool2d(x[..., 0], 2),
    lambda x: F.avg_pool3d(x, 2), lambda x: F.adaptive_avg_pool2d(x[..., 0], 2),
    lambda x: F.adaptive_max_pool2d(x[..., 0], 2),
    lambda x: F.fractional_max_pool2d(x[..., 0], 2, 2)])
def test_gradients_of_linear_losses_can_be_differentiated(pool):
    """They do not depend on the input: what comes out is zero."""
    x = flambeau.randn(1, 2, 4, 4, 4, requires_grad=True)
    grad, = flambeau.autograd.grad(pool(x).sum(), x, create_graph=True)
    assert grad.requires_grad
    second, = flambeau.autograd.grad((grad * grad).sum(), x)
    assert not second.any()


def test_the_node_of_a_gradient_by_pooling():
    x = flambeau.randn(1, 2, 4, 4, requires_grad=True)
    for pool, name in ((F.max_pool2d, "MaxPool2DWithIndicesBackwardBackward0"),
                       (F.avg_pool2d, "AvgPool2DBackwardBackward0")):
        grad, = flambeau.autograd.grad(pool(x, 2).sum(), x, create_graph=True)
        assert type(grad.grad_fn).__name__ == name
