"""Decompositions compute what their ops do, in double and half precision."""
import pytest

import flambeau as torch
from flambeau import _decomp

aten = torch.ops.aten
MEAN, SUM = 1, 2


def numbers(*shape, low=-4.0, high=4.0):
    """Numbers in no order, with zero and the bounds of activations among them."""
    count = int(torch.tensor(shape).prod())
    x = torch.linspace(low, high, count, dtype=torch.float64)
    return x[torch.arange(count) * 7 % count].reshape(shape)


X, Y, W = numbers(3, 5), numbers(3, 5, low=-2.0, high=3.0), numbers(3, 5, low=0.1, high=0.9)
S = W / W.sum(1, keepdim=True)
SIGNS = torch.ones(3, 5, dtype=torch.float64).tril() * 2 - 1
LISTED = torch.tensor([0, 2, 2])
CALLS = [
    (aten.hardtanh.default, X), (aten.hardtanh.default, X, -0.5, 2.0),
    (aten.hardtanh_backward.default, Y, X, -1.0, 1.0), (aten.relu.default, X),
    (aten.threshold.default, X, 0.5, 9.0), (aten.threshold_backward.default, Y, X, 0.5),
    (aten.elu.default, X), (aten.elu.default, X, 1.5, 0.5, 2.0),
    (aten.elu_backward.default, Y, 1.5, 0.5, 2.0, False, X),
    (aten.elu_backward.default, Y, 1.5, 0.5, 2.0, True, X), (aten.celu.default, X, 2.0),
    (aten.selu.default, X), (aten.leaky_relu.default, X), (aten.leaky_relu.default, X, 0.3),
    (aten.leaky_relu_backward.default, Y, X, 0.3, False), (aten.hardsigmoid.default, X),
    (aten.hardsigmoid_backward.default, Y, X), (aten.hardswish_backward.default, Y, X),
    (aten.hardshrink.default, X, 1.0), (aten.softshrink.default, X, 1.0), (aten.gelu.default, X),
    (aten.gelu_backward.default, Y, X), (aten.log_sigmoid_forward.default, X),
    (aten.log_sigmoid_backward.default, Y, X, X[:0]), (aten.sigmoid_backward.default, Y, W),
    (aten.tanh_backward.default, Y, W), (aten.silu_backward.default, Y, X),
    (aten.mish_backward.default, Y, X), (aten.softplus_backward.default, Y, X, 2.0, 5.0),
    (aten.glu_backward.default, Y, numbers(3, 10), 1), (aten.logit.default, W),
    (aten.logit.default, W, 0.3), (aten.logit_backward.default, Y, W, 0.3),
    (aten._softmax.default, X, 1, False), (aten._log_softmax.default, X, 0, False),
    (aten._softmax_backward_data.default, Y, S, 1, torch.float64),
    (aten._log_softmax_backward_data.default, Y, S.log(), 1, torch.float64),
    *[(op, X, Y, *rest, r) for r in (0, MEAN, SUM) for op, *rest in [
        (aten.mse_loss.default,), (aten.smooth_l1_loss.default,), (aten.huber_loss.default,)]],
    *[(aten.mse_loss_backward.default, W, X, Y, r) for r in (0, MEAN)],
    (aten.smooth_l1_loss.default, X, Y, MEAN, 0.0),
    *[(aten.smooth_l1_loss_backward.default, W, X, Y, r, 0.5) for r in (0, MEAN)],
    *[(aten.huber_loss_backward.default, W, X, Y, r, 0.5) for r in (0, MEAN)],
    (aten.soft_margin_loss.default, X, SIGNS),
    (aten.soft_margin_loss_backward.default, W, X, SIGNS),
    (aten.binary_cross_entropy.default, W, S), (aten.binary_cross_entropy.default, W, S, Y, SUM),
    (aten.binary_cross_entropy_backward.default, X, W, S, Y, MEAN),
    (aten.addcmul.default, X, Y, W), (aten.addcdiv.default, X, Y, W), (aten.lerp.Tensor, X, Y, W),
    (aten.lerp.Scalar, X, Y, 0.3), (aten.addmm.default, X[:, :3], X, Y.T),
    (aten.addmv.default, X[0, :3], Y, X[1]), (aten.baddbmm.default, X[None, :, :3], X[None],
                                             Y.T[None]),
    (aten.mv.default, X, Y[0]), (aten.dot.default, X[0], Y[0]), (aten.trace.default, X),
    (aten.rsub.Tensor, X, Y), (aten.deg2rad.default, X), (aten.rad2deg.default, X),
    (aten.frac.default, X), (aten.sinc.default, X), (aten.heaviside.default, X, Y),
    (aten.xlogy.Tensor, X, W), (aten.nan_to_num.default, X / 0, 1.0),
    (aten.logaddexp.default, X, Y),
    (aten.logaddexp.default, X / 0, X / 0), (aten.logsumexp.default, X, [0, 1]),
    (aten.logsumexp.default, X, [1], True), (aten.std.correction, X, [1]),
    (aten.masked_fill.Scalar, X, X > 1, 3), (aten.masked_fill.Tensor, X, X > 1, Y[0, 0]),
    (aten.select_backward.default, X, [3, 4, 5], 1, 2),
    (aten.slice_backward.default, X, [3, 9], 1, 0, 9, 2),
    (aten.diagonal_backward.default, X[0], [5, 6], 1, 0, 1),
    (aten.embedding_dense_backward.default, X, LISTED, 4, -1, False),
    (aten.embedding_dense_backward.default, X, LISTED, 4, 0, True),
    (aten.native_layer_norm.default, X, [5], Y[0], W[0], 1e-5),
    (aten.native_layer_norm.default, X, [3, 5], None, None, 1e-5)]


def of_type(value, dtype):
    if value is torch.float64:
        return dtype
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() \
        else value


def decomposed(overload):
    return _decomp.get_decompositions([overload])[overload]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call[0]))
def test_values(call, dtype):
    overload, *args = call
    args = [of_type(a, dtype) for a in args]
    try:
        expected = overload(*args)
    except (NotImplementedError, RuntimeError):
        pytest.skip("the op has no kernel for the type")
    step = 1e-7 if dtype is torch.float64 else torch.finfo(dtype).eps * 2
    torch.testing.assert_close(decomposed(overload)(*args), expected, rtol=step, atol=step,
                               equal_nan=True)


def test_all_are_tested():
    if torch.__name__ == "flambeau":
        from flambeau._decomp._register import TABLE
        assert set(TABLE) == {overload for overload, *_ in CALLS}


def test_a_program_in_fewer_kinds_of_ops():
    from flambeau.fx.experimental.proxy_tensor import make_fx
    table = _decomp.get_decompositions([aten.leaky_relu, aten.hardtanh])
    graph = make_fx(lambda x: torch.nn.functional.leaky_relu(x) + torch.nn.functional.hardtanh(x),
                    decomposition_table=table)(X)
    targets = {n.target for n in graph.graph.nodes if n.op == "call_function"}
    assert targets == {aten.gt.Scalar, aten.mul.Tensor, aten.where.self, aten.clamp.default,
                       aten.add.Tensor}
    torch.testing.assert_close(graph(X), torch.nn.functional.leaky_relu(X)
                               + torch.nn.functional.hardtanh(X))
