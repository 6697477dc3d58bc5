"""`torch.ops.quantized`: results are the exact ones, rounded once."""
import numpy as np
import pytest

import flambeau as torch

Q, F = torch.ops.quantized, torch.nn.functional


def quantized(values, scale=0.25, zero_point=10, dtype=torch.quint8):
    return torch.quantize_per_tensor(torch.tensor(values), scale, zero_point, dtype)


def steps(exact, scale, zero_point):
    """What an exact result is in a tensor of that scale: the nearest step, ties to even."""
    return np.clip(np.rint(np.asarray(exact) / scale) + zero_point, 0, 255).astype(int).tolist()


A = quantized([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])
W = quantized([[0.5, -0.25, 1.0], [2.0, 0.0, -0.5]], 0.25, 0, torch.qint8)
BIAS = torch.tensor([0.5, -1.0])


@pytest.mark.parametrize("relu", [False, True])
def test_linear(relu):
    exact = A.dequantize().double().numpy() @ W.dequantize().double().numpy().T + BIAS.numpy()
    function = Q.linear_relu if relu else Q.linear
    found = function(A, Q.linear_prepack(W, BIAS), 0.5, 7)
    assert (found.q_scale(), found.q_zero_point(), found.dtype) == (0.5, 7, torch.quint8)
    assert found.int_repr().tolist() == steps(np.maximum(exact, 0) if relu else exact, 0.5, 7)


def test_packed_weights_open_again():
    weight, bias = Q.linear_unpack(Q.linear_prepack(W, BIAS))
    assert weight.int_repr().equal(W.int_repr()) and bias.equal(BIAS)


def test_dynamic_linear_is_near_the_floating_one():
    x = torch.tensor([[0.3, -1.2, 2.0]])
    found = Q.linear_dynamic(x, Q.linear_prepack(W, BIAS))
    expected = F.linear(x, W.dequantize(), BIAS)
    assert found.dtype is torch.float32
    assert (found - expected).abs().max() < 3.2 / 255 * 2.5


def test_half_weights():
    x, w = torch.rand(2, 3), torch.rand(4, 3)
    found = Q.linear_dynamic_fp16(x, Q.linear_prepack_fp16(w))
    torch.testing.assert_close(found, F.linear(x, w.half().float()))


def test_convolution():
    x = quantized(np.arange(16.0, dtype=np.float32).reshape(1, 1, 4, 4).tolist(), 1.0, 0)
    w = quantized([[[[1.0, -1.0], [2.0, 0.0]]]], 1.0, 0, torch.qint8)
    packed = Q.conv2d_prepack(w, None, [1, 1], [0, 0], [1, 1], 1)
    found = Q.conv2d(x, packed, 1.0, 3)
    exact = F.conv2d(x.dequantize(), w.dequantize())
    assert found.int_repr().tolist() == steps(exact.numpy(), 1.0, 3)


@pytest.mark.parametrize("name, exact", [
    ("add", lambda a, b: a + b), ("mul", lambda a, b: a * b),
    ("add_relu", lambda a, b: np.maximum(a + b, 0)),
    ("mul_relu", lambda a, b: np.maximum(a * b, 0))])
def test_pairs(name, exact):
    b = quantized([[0.5, 0.5, -4.0], [1.0, -0.75, 2.0]], 0.25, 20)
    found = getattr(Q, name)(A, b, 0.5, 30)
    a, b = A.dequantize().numpy(), b.dequantize().numpy()
    assert found.int_repr().tolist() == steps(exact(a, b), 0.5, 30)


def test_numbers():
    assert Q.add(A, 1.0).dequantize().tolist() == (A.dequantize() + 1).tolist()
    assert Q.mul(A, 2.0).dequantize().tolist() == (A.dequantize() * 2).tolist()


def test_cat_takes_each_part_to_the_new_scale():
    b = quantized([[0.5, 1.0, 1.5]], 0.5, 3)
    found = Q.cat([A, b], 0, 0.5, 8)
    exact = np.concatenate([A.dequantize().numpy(), b.dequantize().numpy()])
    assert found.int_repr().tolist() == steps(exact, 0.5, 8)


def test_embeddings():
    w = torch.tensor([[0.0, 1.0, 2.0, 3.0], [-1.0, -1.0, -1.0, -1.0]])
    q = torch.quantize_per_channel(w, torch.tensor([3 / 255, 1.0]), torch.tensor([0.0, 1.0]), 0,
                                   torch.quint8)
    packed = Q.embedding_bag_prepack(q)
    found = Q.embedding_byte(packed, torch.tensor([0, 1, 0]))
    torch.testing.assert_close(found, w[torch.tensor([0, 1, 0])], atol=3 / 255, rtol=0)
    bags = Q.embedding_bag_byte(packed, torch.tensor([0, 1, 0]), torch.tensor([0, 2]))
    torch.testing.assert_close(bags, torch.stack([w[0] + w[1], w[0]]), atol=6 / 255, rtol=0)


def test_what_is_not_quantized_is_refused():
    with pytest.raises(NotImplementedError, match="Could not run 'quantized::linear'"):
        Q.linear(torch.ones(1, 3), Q.linear_prepack(W, BIAS), 1.0, 0)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_op'"):
        Q.no_such_op
