"""Derivatives by the dispatcher's names, against the derivatives of the ops they belong to."""
import math

import pytest

import flambeau as torch
from flambeau.nn import functional as F

aten = torch.ops.aten
x = torch.linspace(-1.3, 1.9, 12, dtype=torch.float64).reshape(3, 4).sin()
y = torch.linspace(0.1, 0.9, 12, dtype=torch.float64).reshape(3, 4)
places = torch.tensor([[0, 1], [2, 3], [1, 1]])
mask = x > 0
lengths = torch.tensor([1, 2])
square = x[:, :3]


@pytest.mark.parametrize("function, by_name, inputs", [
    (lambda a: a.cumprod(1), lambda g, a: aten.cumprod_backward(g, a, 1, a.cumprod(1)), (x,)),
    (lambda a: a.cummax(1).values,
     lambda g, a: aten.cummaxmin_backward(g, a, a.cummax(1).indices, 1), (x,)),
    (lambda a: a.max(1).values, lambda g, a: aten.value_selecting_reduction_backward(
        g, 1, a.max(1).indices, a.shape, False), (x,)),
    (lambda a: a.gather(1, places),
     lambda g, a: aten.gather_backward(g, a, 1, places, False), (x,)),
    (lambda a: a.index_select(0, places[:, 0]),
     lambda g, a: aten.index_select_backward(g, a.shape, 0, places[:, 0]), (x,)),
    (lambda a: a.masked_select(mask), lambda g, a: aten.masked_select_backward(g, a, mask), (x,)),
    (lambda a: torch.segment_reduce(a, "sum", lengths=lengths),
     lambda g, a: aten._segment_reduce_backward(g, g, a, "sum", lengths=lengths), (x,)),
    (torch.logit, lambda g, a: aten.logit_backward(g, a), (y,)),
    (lambda a: torch.logit(a, 0.2), lambda g, a: aten.logit_backward(g, a, 0.2), (y,)),
    (F.gelu, aten.infinitely_differentiable_gelu_backward, (x,)),
    (torch.trace, lambda g, a: aten.trace_backward(g, a.shape), (x,)),
    (torch.matrix_exp, lambda g, a: aten.matrix_exp_backward(a, g), (square,)),
    (lambda a, b: a @ b, lambda g, a, b: aten.matmul_backward(g, a, b, [True, True]), (x, y.T)),
    (lambda a: F.affine_grid(a, [3, 1, 2, 2], align_corners=False),
     lambda g, a: aten.affine_grid_generator_backward(g, [3, 1, 2, 2], False),
     (torch.ones(3, 2, 3, dtype=torch.float64),)),
    (lambda a, w, b: torch.conv_tbc(a, w, b, 1),
     lambda g, a, w, b: aten.conv_tbc_backward(g, a, w, b, 1),
     (x[:, None, :2], y[:, :2, None].expand(3, 2, 2).contiguous(), y[0, :2])),
    (lambda a: F.max_pool2d(a, 2), lambda g, a: aten.max_pool2d_backward(g, a, [2, 2]),
     (x[None, None],)),
    (lambda v, g: torch._weight_norm(v, g, 0), lambda g, v, s: aten._weight_norm_interface_backward(
        g, v, s, v.norm(2, 1, keepdim=True), 0), (x, y[:, :1]))])
def test_gradients(function, by_name, inputs):
    leaves = [v.clone().requires_grad_() for v in inputs]
    result = function(*leaves)
    grad = torch.cos(torch.arange(result.numel(), dtype=torch.float64)).reshape(result.shape)
    expected = torch.autograd.grad(result, leaves, grad)
    found = by_name(grad, *inputs)
    for a, b in zip(found if isinstance(found, tuple) else (found,), expected):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("by_name", [
    lambda g, a: aten.cumprod_backward(g, a, 1, a.cumprod(1)),
    lambda g, a: aten.gather_backward(g[:, :2], a, 1, places, False),
    aten.infinitely_differentiable_gelu_backward])
def test_they_have_derivatives(by_name):
    assert torch.autograd.gradcheck(by_name, (y.clone().requires_grad_(),
                                              (x + 2).clone().requires_grad_()))


def test_masked_scatter():
    source = torch.arange(12.0, dtype=torch.float64).requires_grad_()
    result = x.masked_scatter(mask, source)
    expected, = torch.autograd.grad(result, source, y)
    torch.testing.assert_close(aten.masked_scatter_backward(y, mask, source.shape), expected)


def test_glu():
    direction, grad = y.cos(), x[:, :2]
    value, tangent = torch.func.jvp(lambda a: F.glu(a, 1), (x,), (direction,))
    torch.testing.assert_close(aten.glu_jvp(value, x, direction, 1), tangent)
    expected = torch.func.jvp(lambda a: torch.func.vjp(lambda b: F.glu(b, 1), a)[1](grad)[0],
                              (x,), (direction,))[1]
    found = aten.glu_backward_jvp(aten.glu_backward(grad, x, 1), grad, x,
                                  torch.zeros_like(grad), direction, 1)
    torch.testing.assert_close(found, expected)


def test_rms_norm():
    a, w = x.clone().requires_grad_(), y[0].clone().requires_grad_()
    _, scale = aten._fused_rms_norm(a, [4], w, 0.1)
    expected = torch.autograd.grad(F.rms_norm(a, [4], w, 0.1), (a, w), y)
    found = aten._fused_rms_norm_backward(y, x, [4], scale.detach(), w.detach(), [True, True])
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other)


def test_rrelu_and_wrong_calls():
    drawn = torch.full_like(x, 0.2)
    torch.testing.assert_close(
        aten.rrelu_with_noise_backward(y, x, drawn, 0.1, 0.3, True, False), y * 0.2)
    torch.testing.assert_close(
        aten.rrelu_with_noise_backward(y, x, drawn, 0.1, 0.3, False, False),
        torch.where(x > 0, y, y * 0.2))
    assert math.isnan(aten.logit_backward(y, x)[0, 0])
    with pytest.raises(RuntimeError, match="expected matrix input"):
        aten.trace_backward(y[0, 0], [2])
