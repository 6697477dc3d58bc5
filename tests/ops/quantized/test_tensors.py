"""Quantised tensors, and the round trip with a gradient. Expected values are PyTorch's."""
import copy
import pickle
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.func import jvp, vmap

X = torch.tensor([[-1.0, 0.0], [1.0, 2.0]])


def per_tensor(dtype=torch.quint8):
    return torch.quantize_per_tensor(X, 0.1, 10, dtype)


def per_channel():
    return torch.quantize_per_channel(X, torch.tensor([0.1, 0.01]), torch.tensor([10, 0]), 0,
                                      torch.quint8)


def test_printed_form():
    assert repr(per_tensor()) == (
        "tensor([[-1.,  0.],\n        [ 1.,  2.]], size=(2, 2), dtype=torch.quint8,\n"
        "       quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=10)")
    assert repr(per_channel()) == (
        "tensor([[-1.,  0.],\n        [ 1.,  2.]], size=(2, 2), dtype=torch.quint8,\n"
        "       quantization_scheme=torch.per_channel_affine,\n"
        "       scale=tensor([0.1000, 0.0100], dtype=torch.float64),\n"
        "       zero_point=tensor([10,  0]), axis=0)")


@pytest.mark.parametrize("dtype, expected", [
    (torch.qint8, [0, 2, 2, 4, 0, 127, 127, -128]),
    (torch.quint8, [0, 2, 2, 4, 0, 255, 255, 0])])
def test_ties_go_to_even_and_ends_are_clamped(dtype, expected):
    x = torch.tensor([0.05, 0.15, 0.25, 0.35, -0.05, float("nan"), float("inf"), -float("inf")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.quantize_per_tensor(x, 0.1, 0, dtype).int_repr().tolist() == expected


def test_wide_integers():
    x = torch.tensor([1e10, -1e10, float("nan")])
    assert torch.quantize_per_tensor(x, 0.1, 0, torch.qint32).int_repr().tolist() == [
        2147483647, -2147483648, -2147483648]


def test_questions():
    q, c = per_tensor(), per_channel()
    assert q.is_quantized and not X.is_quantized and type(q).__name__ == "Tensor"
    assert (q.q_scale(), q.q_zero_point(), q.dtype) == (0.1, 10, torch.quint8)
    assert q.qscheme() is torch.per_tensor_affine and c.qscheme() is torch.per_channel_affine
    assert c.q_per_channel_scales().dtype is torch.float64 and c.q_per_channel_axis() == 0
    assert c.q_per_channel_zero_points().tolist() == [10, 0]
    assert c.int_repr().tolist() == [[0, 10], [100, 200]]
    with pytest.raises(RuntimeError, match="kPerTensorAffine"):
        c.q_scale()
    with pytest.raises(RuntimeError, match="kPerChannelAffine"):
        q.q_per_channel_axis()
    for ask in (torch.q_scale, torch.int_repr, torch.Tensor.qscheme):
        with pytest.raises(NotImplementedError, match="'CPU' backend"):
            ask(X)


def test_floating_zero_points():
    f = torch.quantize_per_channel(X, torch.tensor([0.1, 0.01]), torch.tensor([10.5, 0.0]), 0,
                                   torch.quint8)
    assert f.qscheme() is torch.per_channel_affine_float_qparams
    torch.testing.assert_close(f.dequantize(), torch.tensor([[-1.05, -0.05], [1.0, 2.0]]))


@pytest.mark.parametrize("dtype, reduce, scale, zero", [
    (torch.quint8, False, 0.011764705882352941, 85), (torch.qint8, True, 0.023622047244094488, -22),
    (torch.quint8, True, 0.023622047244094488, 42)])
def test_dynamic(dtype, reduce, scale, zero):
    q = torch.quantize_per_tensor_dynamic(X, dtype, reduce)
    assert (q.q_scale(), q.q_zero_point()) == (scale, zero)


def test_lists():
    pair = torch.quantize_per_tensor([X, X], torch.tensor([0.5, 1.0]), torch.tensor([2, 3]),
                                     torch.quint8)
    assert [q.q_zero_point() for q in pair] == [2, 3]
    assert all(torch.equal(x, X) for x in torch.dequantize(list(pair)))


MOVES = {
    "index": lambda q: q[1], "slice": lambda q: q[:, 1:], "reshape": lambda q: q.reshape(4),
    "t": lambda q: q.t(), "T": lambda q: q.T, "flip": lambda q: q.flip(0),
    "list": lambda q: [*q][1],
    "unsqueeze": lambda q: q.unsqueeze(0), "expand": lambda q: q.expand(3, 2, 2),
    "unbind": lambda q: q.unbind(1)[0], "clone": lambda q: q.clone(), "to": lambda q: q.to("cpu"),
    "deepcopy": copy.deepcopy, "pickle": lambda q: pickle.loads(pickle.dumps(q))}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("make", [per_tensor, per_channel])
def test_moves_keep_the_meaning(make, name):
    q = make()
    moved = MOVES[name](q)
    assert moved.is_quantized
    expected = X.clone() if name in ("deepcopy", "pickle") else MOVES[name](X)
    assert torch.equal(moved.dequantize(), expected)


def test_a_view_shares_memory():
    q = per_tensor()
    q[0].fill_(2.0)
    assert q.dequantize().tolist() == [[2.0, 2.0], [1.0, 2.0]]
    q[1] = torch.tensor([0.0, 1.0])
    assert q.int_repr().tolist() == [[30, 30], [10, 20]]


def test_arithmetic():
    q = per_tensor()
    assert q.relu().dequantize().tolist() == [[0.0, 0.0], [1.0, 2.0]]
    assert (q.max().item(), q.mean().item()) == (2.0, 0.5)
    assert q.sort(descending=True).indices.tolist() == [[1, 0], [1, 0]]
    assert (q.sigmoid().q_scale(), q.sigmoid().q_zero_point()) == (1 / 256, 0)
    assert q.sigmoid().int_repr().tolist() == [[69, 128], [187, 225]]
    assert (q == q).all() and torch.equal(q, per_tensor()) and not torch.equal(q, per_channel())
    assert torch.cat([q, q]).shape == (4, 2)
    assert q.clone().relu_().int_repr().tolist() == [[10, 10], [20, 30]]
    assert q.clone().copy_(X * 2).dequantize().tolist() == (X.clamp(min=-0.5) * 2).tolist()


@pytest.mark.parametrize("call, error, text", [
    (lambda: per_tensor() + per_tensor(), NotImplementedError, "aten::add"),
    (lambda: per_tensor().sum(), NotImplementedError, "aten::sum"),
    (lambda: per_channel().relu(), RuntimeError, "kPerTensorAffine"),
    (lambda: per_tensor().numpy(), TypeError, "QUInt8"),
    (lambda: per_tensor().float(), RuntimeError, "requires quantized dtype"),
    (lambda: torch.zeros(2, dtype=torch.quint8), NotImplementedError, "torch.quint8"),
    (lambda: torch.quantize_per_tensor(X, 0.1, 1000, torch.quint8), RuntimeError, "above upper"),
    (lambda: torch.quantize_per_tensor(X.double(), 0.1, 1, torch.quint8), RuntimeError, "Double"),
    (lambda: torch.quantize_per_tensor(X, 0.1, 1, torch.uint8), RuntimeError, "new_qtensor"),
    (lambda: torch.quantize_per_channel(X, torch.ones(1), torch.ones(1), 0, torch.qint8),
     RuntimeError, "expected 2 got, 1"),
    (lambda: torch.quantize_per_channel(X, torch.ones(2), torch.ones(2), 3, torch.qint8),
     RuntimeError, "axis out of range")])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


# ---- the round trip with a gradient -------------------------------------------------------------

def fake(x, qmin=0, qmax=15):
    return torch.fake_quantize_per_tensor_affine(x, 0.5, 3, qmin, qmax)


def test_fake_quantize():
    x = torch.tensor([-9.0, -0.3, 0.25, 0.75, 9.0, float("nan")], requires_grad=True)
    y = fake(x)
    assert y.tolist() == [-1.5, -0.5, 0.5, 0.5, 6.0, -1.5]
    assert type(y.grad_fn).__name__ == "FakeQuantizePerTensorAffineCachemaskBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 1, 0, 0]
    assert jvp(fake, (x.detach(),), (torch.ones(6),))[1].tolist() == [0, 1, 1, 1, 0, 0]
    again = torch.fake_quantize_per_tensor_affine(x, torch.tensor([0.5]), torch.tensor([3]), 0, 15)
    assert torch.equal(again, y)


def test_fake_quantize_by_channel_and_batch():
    x = torch.tensor(np.linspace(-2, 9, 12, dtype=np.float32).reshape(2, 3, 2))
    scale, zero = torch.tensor([0.5, 0.25, 1.0]), torch.tensor([3, 0, 1], dtype=torch.int32)
    whole = torch.fake_quantize_per_channel_affine(x, scale, zero, 1, 0, 15)
    for i in range(3):
        part = torch.fake_quantize_per_tensor_affine(x[:, i], scale[i], zero[i], 0, 15)
        assert torch.equal(whole[:, i], part)
    batched = vmap(lambda row: torch.fake_quantize_per_channel_affine(row, scale, zero, 0, 0, 15))
    assert torch.equal(batched(x), whole)


def test_moving_averages_with_fake_quantisation():
    """The averages, and a scale with which neither side of a symmetric range is clamped."""
    on, x = torch.ones(1), torch.tensor([[-1.0, 0.5], [0.25, 2.0]], requires_grad=True)
    low, high = torch.full((2,), float("inf")), torch.full((2,), -float("inf"))
    scale, zero = torch.ones(2), torch.zeros(2, dtype=torch.int)
    for factor in (1, 3):
        y = torch.fused_moving_avg_obs_fake_quant(factor * x, on, on, low, high, scale, zero, 0.5,
                                                  -128, 127, 0, True, True)
    assert (low.tolist(), high.tolist()) == ([-2.0, 0.5], [1.0, 4.0])
    torch.testing.assert_close(scale, torch.tensor([2 / 128, 4 / 255]))
    assert zero.tolist() == [0, -128]
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0], [3.0, 0.0]]


def test_fake_quantize_refusals():
    with pytest.raises(RuntimeError, match="zero_point"):
        torch.fake_quantize_per_tensor_affine(X, 0.1, 30, 0, 15)
    with pytest.raises(RuntimeError, match="Zero-point must be"):
        torch.fake_quantize_per_channel_affine(X, torch.ones(2), torch.tensor([0, 1]), 0, 0, 15)


def test_names_of_types_without_arrays():
    assert repr(torch.int3) == "torch.int3" and torch.bit is torch.uint1
    assert torch.bits16.itemsize == 2 and torch.qint32.itemsize == 4
    assert pickle.loads(pickle.dumps(torch.uint7)) is torch.uint7
    for dtype in (torch.int4, torch.bits8, torch.qint8, torch.float4_e2m1fn_x2):
        with pytest.raises(NotImplementedError, match=dtype.name):
            torch.zeros(2, dtype=dtype)


def test_data_is_replaced_by_that_of_another_quantised_tensor():
    x = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)
    x.data = torch.quantize_per_tensor(torch.zeros(2), 0.2, 1, torch.qint8)
    assert x.dtype is torch.qint8 and x.shape == (2,) and x.q_scale() == 0.2
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = torch.ones(2)


def test_plain_facts():
    x = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    assert not x.is_conj() and not x.is_neg() and not x.is_inference() and x.is_same_size(x)


def test_integers_are_given_a_meaning():
    """Recorded from PyTorch."""
    x = torch._make_per_tensor_quantized_tensor(torch.tensor([1, 7], dtype=torch.uint8), 0.5, 3)
    assert x.dtype is torch.quint8 and x.dequantize().tolist() == [-1.0, 2.0]
    x = torch._make_per_channel_quantized_tensor(
        torch.ones(2, 2, dtype=torch.int8), torch.tensor([1.0, 0.5]), torch.tensor([0, 3]), 1)
    assert x.q_per_channel_axis() == 1 and x.dequantize().tolist() == [[1.0, -1.0], [1.0, -1.0]]
    with pytest.raises(RuntimeError, match="number of elements in scales"):
        torch._make_per_channel_quantized_tensor(
            torch.ones(2, 2, dtype=torch.int8), torch.ones(3), torch.zeros(2), 0)
    with pytest.raises(RuntimeError, match="requires quantized dtype"):
        torch._make_per_tensor_quantized_tensor(torch.ones(2), 0.5, 3)


def test_nan_and_the_order_of_memory():
    x = torch.full((2, 3), float("nan"))
    one, zero = torch.ones(2), torch.zeros(2, dtype=torch.int64)
    assert torch.quantize_per_tensor(x, 0.1, 4, torch.qint8).int_repr().eq(127).all()
    assert torch.quantize_per_channel(x, one, zero, 0, torch.qint8).int_repr().eq(0).all()
    assert torch.quantize_per_tensor(x.t(), 0.1, 4, torch.qint8).stride() == (2, 1)
