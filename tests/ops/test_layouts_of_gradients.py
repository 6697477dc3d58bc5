"""In which order the dimensions of a gradient, a loss and a tangent lie in memory.

An op of elements gives a result laid out as its operands; where these differ, the first of them
decides. Which one that is belongs to the op: mostly the gradient, for some the point.
"""
import importlib.util
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau
from flambeau import nn
from flambeau.autograd import forward_ad
from flambeau.nn import functional as F

SHAPE = (2, 3, 4)
orders = st.permutations(range(3)).map(tuple)
DENSE = (12, 4, 1)
quickly = settings(deadline=None, max_examples=20)


def laid(order, shape=SHAPE):
    """Numbers between 0 and 1 with their dimensions in memory in this order."""
    back = [order.index(d) for d in range(len(order))]
    return (flambeau.rand([shape[d] for d in order]) * 0.8 + 0.1).permute(back)


def gradient(f, x, by):
    x = x.clone().requires_grad_()
    y = f(x)
    return flambeau.autograd.grad(y, x, by if by.shape == y.shape else None)[0]


BY_THE_POINT = {
    "relu": F.relu, "leaky_relu": F.leaky_relu, "threshold": lambda x: F.threshold(x, 0.5, 0.0),
    "prelu": lambda x: F.prelu(x, flambeau.ones(3)),
}
BY_THE_GRADIENT = ("elu", "gelu", "silu", "hardtanh", "softplus", "hardswish", "hardsigmoid",
                   "mish", "softshrink", "logsigmoid", "sigmoid", "tanh")


@pytest.mark.parametrize("name", BY_THE_POINT)
@quickly
@given(orders, orders)
def test_a_gradient_lies_as_the_point_where_that_is_the_first_operand(name, own, other):
    x, by = laid(own), laid(other)
    found = gradient(BY_THE_POINT[name], x, by)
    assert found.stride() == x.stride()
    flambeau.testing.assert_close(
        found, gradient(BY_THE_POINT[name], x.contiguous(), by.contiguous()))


@pytest.mark.parametrize("name", BY_THE_GRADIENT)
@quickly
@given(orders, orders)
def test_other_gradients_lie_as_the_gradient_of_the_result(name, own, other):
    x, by = laid(own), laid(other)
    f = getattr(F, name)
    found = gradient(f, x, by)
    assert found.stride() == by.stride()
    flambeau.testing.assert_close(found, gradient(f, x.contiguous(), by.contiguous()))


@quickly
@given(orders)
def test_the_logarithm_of_sigmoid_lies_by_rows(order):
    assert F.logsigmoid(laid(order)).stride() == DENSE
    assert F.rrelu(laid(order)).stride() == DENSE


@quickly
@given(orders)
def test_a_gated_unit_lies_as_the_first_half(order):
    x = laid(order, (2, 6, 4))
    y = F.glu(x, 1)
    a, b = x.chunk(2, 1)
    assert y.stride() == (a * b.sigmoid()).stride()
    flambeau.testing.assert_close(y, F.glu(x.contiguous(), 1))


# Whose layout the losses have, and whose the gradients, of input (0) and target (1); None: by rows.
LOSSES = {"mse_loss": (0, None), "smooth_l1_loss": (0, None), "huber_loss": (0, None),
          "soft_margin_loss": (0, 1), "binary_cross_entropy": (0, 0),
          "binary_cross_entropy_with_logits": (1, 0)}


@pytest.mark.parametrize("dtype", [flambeau.float32, flambeau.bfloat16])
@pytest.mark.parametrize("name", LOSSES)
@quickly
@given(orders, orders, orders)
def test_losses_and_their_gradients_lie_as_one_of_their_arguments(name, dtype, own, other, third):
    f = getattr(F, name)
    both = [laid(own).to(dtype), laid(other).to(dtype)]
    x = both[0].requires_grad_()
    loss = f(*both, reduction="none")
    by_loss, by_input = LOSSES[name]
    assert loss.stride() == both[by_loss].stride()
    expected = f(*[t.detach().contiguous() for t in both], reduction="none")
    flambeau.testing.assert_close(loss, expected)
    found, = flambeau.autograd.grad(loss, x, laid(third).to(dtype))
    strides = DENSE if by_input is None else both[by_input].stride()
    assert found.stride() == strides
    found, = flambeau.autograd.grad(f(*both), x)
    assert found.stride() == strides


@quickly
@given(orders, orders)
def test_a_tangent_lies_as_its_tensor(own, other):
    with forward_ad.dual_level():
        x = forward_ad.make_dual(laid(own), laid(other))
        other = laid(other)
        for y in (x, x * other, other * x, x.softmax(0), flambeau.bmm(x, x.mT), x.sum(1),
                  flambeau.linalg.svdvals(x), *flambeau.linalg.lu_factor(x)[:1]):
            value, tangent = forward_ad.unpack_dual(y)
            assert tangent.stride() == value.stride()


@quickly
@given(st.booleans(), st.booleans())
def test_the_gradient_of_linear_by_a_sequence_lies_as_its_matrix(by_columns, bias):
    x = flambeau.rand(3, 5).t() if by_columns else flambeau.rand(5, 3)
    weight = flambeau.rand(4, 3, requires_grad=True)
    b = flambeau.rand(4) if bias else None
    by = flambeau.rand(5, 4)
    x = x.unsqueeze(1).requires_grad_()
    found, = flambeau.autograd.grad(F.linear(x, weight, b), x, by.unsqueeze(1))
    assert found.squeeze(1).stride() == ((1, 5) if by_columns else (3, 1))
    flambeau.testing.assert_close(found.squeeze(1), by @ weight.detach())


@pytest.mark.parametrize("kind, dtype, strides", [
    ("GRU", "float32", (1, 5)), ("RNN", "float32", (1, 5)), ("LSTM", "float64", (1, 5)),
    ("LSTM", "float32", (3, 1))])
def test_the_gradient_of_a_recurrent_network_by_a_sequence_by_columns(kind, dtype, strides):
    network = getattr(nn, kind)(3, 2, dtype=getattr(flambeau, dtype))
    x = flambeau.rand(3, 5, dtype=getattr(flambeau, dtype)).t().requires_grad_()
    y, _ = network(x)
    found, = flambeau.autograd.grad(y.sum(), x)
    assert found.stride() == strides
    rows = x.detach().contiguous().requires_grad_()
    expected, = flambeau.autograd.grad(network(rows)[0].sum(), rows)
    flambeau.testing.assert_close(found, expected)


def test_the_gradient_of_what_is_repeated_once_is_not_copied():
    x, by = flambeau.rand(1, 1, 3, requires_grad=True), flambeau.rand(3, 5).t()[:1].unsqueeze(1)
    assert flambeau.autograd.grad(x.repeat(1, 1, 1), x, by)[0].stride() == by.stride()
    x = flambeau.rand(2, 3, requires_grad=True)
    by = flambeau.rand(4, 2, 9)
    found, = flambeau.autograd.grad(x.repeat(4, 1, 3), x, by)
    flambeau.testing.assert_close(found, by.view(4, 2, 3, 3).sum((0, 2)))


@pytest.mark.parametrize("dtype, rank, keeps", [
    ("float32", 2, True), ("float64", 2, True), ("complex64", 2, False), ("float32", 3, True),
    ("float64", 3, False), ("complex128", 3, False)])
def test_which_convolutions_have_gradients_with_the_channels_last(dtype, rank, keeps):
    last = (flambeau.channels_last, flambeau.channels_last_3d)[rank - 2]
    x, w = (flambeau.rand(2, 3, *(4,) * rank, dtype=getattr(flambeau, dtype)).contiguous(
        memory_format=last).requires_grad_() for _ in range(2))
    y = getattr(F, f"conv{rank}d")(x, w, padding=1)
    for found in flambeau.autograd.grad(y, [x, w], flambeau.ones_like(y)):
        assert found.is_contiguous(memory_format=last if keeps else flambeau.contiguous_format)


@pytest.mark.parametrize("dtype", [flambeau.float32, flambeau.bfloat16])
def test_batch_norm_of_what_lies_otherwise_than_images_do_lies_by_rows(dtype):
    x = flambeau.rand(4, 3, 2).to(dtype).permute(2, 1, 0)
    assert F.batch_norm(x, None, None, training=True).stride() == (12, 4, 1)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("by_columns", [True, False])
def test_gradients_of_products_with_reflections_lie_as_their_results(left, by_columns):
    a, c = [flambeau.rand(5, 5, dtype=flambeau.float64) for _ in range(2)]
    a, c = [t.t().requires_grad_() if by_columns else t.requires_grad_() for t in (a, c)]
    tau = flambeau.rand(5, dtype=flambeau.float64, requires_grad=True)
    y = flambeau.ormqr(a, tau, c, left)
    by_a, _, by_c = flambeau.autograd.grad(y, [a, tau, c], flambeau.rand_like(y))
    assert by_a.stride() == a.stride() and by_c.stride() == (1, 5)


@quickly
@given(st.integers(1, 3), st.integers(0, 2), st.integers(1, 2))
def test_the_second_gradient_by_a_weight_is_part_of_a_convolution(stride, padding, groups):
    """Of the input with the result: its sizes are those of the strides."""
    x = flambeau.rand(2, 4, 7, dtype=flambeau.float64, requires_grad=True)
    w = flambeau.rand(4, 4 // groups, 3, dtype=flambeau.float64, requires_grad=True)
    y = F.conv1d(x, w, stride=stride, padding=padding, groups=groups)
    v = flambeau.rand_like(y, requires_grad=True)
    by_x, = flambeau.autograd.grad(y, x, v, create_graph=True)
    found, = flambeau.autograd.grad(by_x, w, flambeau.rand_like(by_x), create_graph=True)
    size = 7 + 2 * padding - stride * (y.shape[2] - 1)
    assert found.stride() == (size, 4 * size, 1)


def test_what_is_scattered_has_a_gradient_with_the_strides_of_the_window():
    x = flambeau.rand(3, 3, requires_grad=True)
    part = flambeau.rand(2, 2, requires_grad=True)
    by = flambeau.rand(3, 3)
    y = flambeau.as_strided_scatter(x, part, (2, 2), (1, 2), 1)
    found, = flambeau.autograd.grad(y, part, by)
    assert found.stride() == (1, 2)
    assert found.equal(by.as_strided((2, 2), (1, 2), 1))


def test_the_zero_gradient_of_pooling_by_its_input_lies_by_rows():
    x = flambeau.rand(1, 2, 4, 6, requires_grad=True)
    y = F.max_pool2d(x, 2)
    v = flambeau.rand_like(y, requires_grad=True)
    by_x, = flambeau.autograd.grad(y, x, v, create_graph=True)
    by = flambeau.rand(1, 2, 4, 6).contiguous(memory_format=flambeau.channels_last)
    second, = flambeau.autograd.grad(by_x, x, by)
    assert second.stride() == x.stride() and not second.any()


DATA = Path(__file__).parents[1] / "data"
spec = importlib.util.spec_from_file_location("record_second_strides",
                                              DATA / "record_second_strides.py")
record_second_strides = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record_second_strides)
SECOND = {name: rest for name, *rest in record_second_strides.layouts()}


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("name", SECOND)
def test_gradients_of_gradients_lie_as_recorded(name):
    expected = json.loads((DATA / "second_strides.json").read_text())[name]
    assert record_second_strides.strides(flambeau, *SECOND[name]) == expected


ROWS_OF_ANY = {
    "renorm": lambda x: x.renorm(2, 0, 0.5), "mvlgamma": lambda x: (x + 2).mvlgamma(2),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 1), "max": lambda x: (x > 0.5).max(1).values,
    "layer_norm": lambda x: F.layer_norm(x, (4,)), "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x, 3), "batch_norm": lambda x: F.batch_norm(
        x, None, None, training=True),
}


@pytest.mark.parametrize("name", ROWS_OF_ANY)
@quickly
@given(orders)
def test_results_that_lie_by_rows_have_tangents_that_do(name, order):
    x, function = laid(order), ROWS_OF_ANY[name]
    assert function(x).is_contiguous()
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(function(forward_ad.make_dual(x, laid(order))))
    assert found.primal.is_contiguous()
    assert found.tangent is None or found.tangent.is_contiguous()


SCATTERED = {
    "select": lambda x, y: flambeau.select_scatter(x, y[0], 0, 1),
    "slice": lambda x, y: flambeau.slice_scatter(x, y[:1], 0, 1),
    "diagonal": lambda x, y: flambeau.diagonal_scatter(x, y[0, :2, :].mT, 0, 0, 1),
}


@pytest.mark.parametrize("name", SCATTERED)
@quickly
@given(orders, st.booleans())
def test_what_is_scattered_into_keeps_its_strides(name, order, gaps):
    x = laid(order, (2, 3, 8))[..., ::2] if gaps else laid(order)
    y = laid((0, 1, 2))
    found = SCATTERED[name](x, y)
    assert found.stride() == x.stride()
    assert flambeau.equal(found, SCATTERED[name](x.contiguous(), y))


@quickly
@given(orders, orders)
def test_gradients_that_lie_as_the_point(own, other):
    x, by = laid(own), laid(other)
    assert gradient(lambda x: x.take(flambeau.tensor([1, 0])).sum(), x, by).stride() == x.stride()
    for pair in (flambeau.maximum, flambeau.minimum):
        one, two = x.clone().requires_grad_(), laid(other).requires_grad_()
        for found in flambeau.autograd.grad(pair(one, two), (one, two), by):
            assert found.stride() == x.stride()
    point = x.clone().requires_grad_()
    found, = flambeau.autograd.grad(point.logit(), point, by, create_graph=True)
    assert found.stride() == x.stride()


@pytest.mark.parametrize("heads", [(), (2,), (2, 3)])
def test_gradients_of_attention(heads):
    q, k, v = [flambeau.rand(*heads, n, 5, requires_grad=True) for n in (4, 6, 6)]
    result = F.scaled_dot_product_attention(q, k, v)
    dq, dk, dv = flambeau.autograd.grad(result.sum(), (q, k, v))
    if len(heads) == 2:
        assert all(d.transpose(1, 2).is_contiguous() for d in (dq, dk, dv))
    else:
        assert dq.is_contiguous() and dv.is_contiguous()
        assert (dk.mT if heads else dk).is_contiguous()


@pytest.mark.parametrize("dim", range(4))
def test_a_stack_of_images_is_a_join_that_is_split(dim):
    x = flambeau.rand(2, 3, 4, 5).contiguous(memory_format=flambeau.channels_last)
    stacked, joined = flambeau.stack([x, x], dim), flambeau.cat([x, x], dim)
    assert stacked.stride() == joined.unflatten(dim, (2, -1)).stride()
    assert flambeau.equal(stacked, flambeau.stack([x.contiguous()] * 2, dim))


def test_expanded_channels_are_no_channels_last():
    x = flambeau.rand(2, 1, 4, 4).expand(2, 3, 4, 4)
    for found in (F.max_pool2d(x, 2), F.interpolate(x, scale_factor=2), flambeau.cat([x, x])):
        assert found.is_contiguous()
