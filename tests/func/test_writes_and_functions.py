"""Writes to views, and custom functions, under vmap: against a loop over the slices."""

import pytest

import flambeau
import flambeau.nn.functional as F
from flambeau.func import grad, jvp, vmap


def rows():
    return flambeau.tensor([[1.0, 2.0, 3.0], [2.0, -1.0, 1.0]])


def same_as_loop(function, batch):
    looped = flambeau.stack([function(row) for row in batch])
    flambeau.testing.assert_close(vmap(function)(batch), looped)


def write_scaled(x):
    y = x * 2
    y[0].mul_(3)
    return (y * y).sum()


def write_into_zeros(x):
    y = flambeau.zeros_like(x)
    y[0] = x[1] * x[2]
    return (y * x).sum()


def write_twice(x):
    y = x * x
    view = y[1:]
    view[0] = x[0]
    view.mul_(x[2])
    return (y * flambeau.arange(3.0)).sum()


@pytest.mark.parametrize("function", [write_scaled, write_into_zeros, write_twice])
def test_gradient_of_a_write_to_a_view(function):
    same_as_loop(grad(function), rows())


def test_new_tensors_of_a_slice_may_be_written_to():
    same_as_loop(lambda x: x.new_zeros(3).add_(x), rows())


@pytest.mark.parametrize("write", [
    lambda x: x.clone().fill_(2.0), lambda x: x.clone().zero_(),
    lambda x: x.clone().addcmul_(x, x, value=2), lambda x: x.clone().clamp_(min=0)])
def test_in_place_ops_under_a_level(write):
    same_as_loop(write, rows())
    value, tangent = jvp(lambda x: write(x), (rows(),), (flambeau.ones(2, 3),))
    flambeau.testing.assert_close(value, write(rows()))
    assert tangent.shape == value.shape


class Square(flambeau.autograd.Function):
    """A square whose backward is three times the derivative, so that tests see which one ran."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        return x * x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, factor = ctx.saved_tensors
        return 6 * x * factor * g, (3 * x * x * g).sum()


def test_generated_batching_rule_keeps_the_written_backward():
    factor = flambeau.tensor(2.0)
    batch = rows()
    per_row = vmap(grad(lambda x, f: Square.apply(x, f).sum(), argnums=(0, 1)), (0, None))
    flambeau.testing.assert_close(per_row(batch, factor)[0], 6 * batch * 2)
    outer = grad(lambda x, f: vmap(lambda r: Square.apply(r, f))(x).sum(), argnums=(0, 1))
    by_batch, by_factor = outer(batch, factor)
    flambeau.testing.assert_close(by_batch, 6 * batch * 2)
    flambeau.testing.assert_close(by_factor, (3 * batch * batch).sum())


@pytest.mark.parametrize("function", [
    lambda x: F.layer_norm(x, (3,)), F.gelu, F.silu,
    lambda x: F.cross_entropy(x, flambeau.tensor([0, 2]), reduction="none")])
def test_batched_gradients_of_fused_ops(function):
    x = rows().requires_grad_()
    y = function(x)
    weights = flambeau.arange(float(2 * y.numel())).reshape(2, *y.shape)
    together, = flambeau.autograd.grad(y, x, weights, retain_graph=True, is_grads_batched=True)
    one_by_one = [flambeau.autograd.grad(y, x, w, retain_graph=True)[0] for w in weights]
    flambeau.testing.assert_close(together, flambeau.stack(one_by_one))


class Sine(flambeau.autograd.Function):
    """A sine whose `jvp` is three times the derivative, so that tests see that it ran."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        return x.sin() * factor, x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(inputs[1], output[1])

    @staticmethod
    def jvp(ctx, x_t, factor_t):
        factor, cosine = ctx.saved_tensors
        return 3 * cosine * factor * x_t, 0 * x_t


def sine(x, factor=flambeau.tensor(2.0)):
    return Sine.apply(x, factor)[0]


@pytest.mark.parametrize("along", [
    lambda x, t: jvp(vmap(sine), (x,), (t,))[1],
    lambda x, t: jvp(vmap(sine, 1, 1), (x,), (t,))[1],
    lambda x, t: jvp(vmap(vmap(sine)), (x,), (t,))[1],
    lambda x, t: vmap(lambda a, b: jvp(sine, (a,), (b,))[1])(x, t),
    lambda x, t: vmap(lambda a, b: jvp(vmap(sine), (a,), (b,))[1])(x, t),
    lambda x, t: jvp(lambda a: jvp(sine, (a,), (t,))[0], (x,), (t,))[1],
])
def test_generated_batching_rule_keeps_the_written_jvp(along):
    x = rows()
    t = flambeau.arange(6.0).reshape(2, 3)
    flambeau.testing.assert_close(along(x, t), 6 * x.cos() * t)
