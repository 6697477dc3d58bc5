"""Quantisation on plain tensors of integers: formulas, bounds, gradients and refusals."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.ao.quantization.fx import _decomposed  # noqa: F401  defines the ops

Q = torch.ops.quantized_decomposed
BOUNDS = {torch.int8: (-128, 127), torch.uint8: (0, 255), torch.int16: (-1000, 1000)}


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(list(BOUNDS)), st.floats(0.01, 3.0), st.integers(0, 20),
       st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=8))
def test_one_scale(dtype, scale, zero, numbers):
    """Numbers that the range holds come back to within half a step."""
    low, high = BOUNDS[dtype]
    x = torch.tensor(numbers)
    q = Q.quantize_per_tensor(x, scale, zero, low, high, dtype)
    assert q.dtype is dtype and bool(((q.int() >= low) & (q.int() <= high)).all())
    back = Q.dequantize_per_tensor(q, scale, zero, low, high, dtype)
    reached = ((low - zero) * scale <= x) & (x <= (high - zero) * scale)
    assert bool(((back - x).abs()[reached] <= scale * 0.5001 + 1e-4).all())
    same = Q.quantize_per_tensor.tensor2(x, torch.tensor(scale, dtype=torch.float64),
                                         torch.tensor(zero), torch.tensor(low), torch.tensor(high),
                                         dtype)
    assert torch.equal(q, same)


def test_scales_that_fit():
    x = torch.tensor([[-1.0, 0.5], [1.55, 0.0]])
    scale, zero = Q.choose_qparams.tensor(x, 0, 255, 1e-6, torch.uint8)
    assert scale.dtype is torch.float64 and zero.dtype is torch.int64
    np.testing.assert_allclose((scale.item(), zero.item()), (2.55 / 255, 100), rtol=1e-6)
    scale, zero = Q.choose_qparams_symmetric.tensor(x, -127, 127, 1e-6, torch.int8)
    np.testing.assert_allclose((scale.item(), zero.item()), (1.55 / 127, 0), rtol=1e-6)
    scale, zero = Q.choose_qparams_per_token(x, torch.int8)
    np.testing.assert_allclose(scale.flatten(), [1 / 127, 1.55 / 127], rtol=1e-6)
    scale, zero = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
    np.testing.assert_allclose(scale.flatten(), [1.5 / 255, 1.55 / 255], rtol=1e-6)
    assert zero.flatten().tolist() == [42, -128]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_scale_for_each_channel(axis):
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    scales, zeros = torch.linspace(0.05, 0.2, x.shape[axis]), torch.arange(x.shape[axis])
    q = Q.quantize_per_channel(x, scales, zeros, axis, -128, 127, torch.int8)
    back = Q.dequantize_per_channel(q, scales, zeros, axis, -128, 127, torch.int8)
    assert bool(((back - x).abs() <= 0.5001 * scales.max()).all())
    for i in range(x.shape[axis]):
        one = Q.quantize_per_tensor(x.select(axis, i), scales[i].item(), zeros[i].item(), -128,
                                    127, torch.int8)
        assert torch.equal(q.select(axis, i), one)
    half = Q.dequantize_per_channel(q, scales, zeros, axis, -128, 127, torch.int8,
                                    out_dtype=torch.bfloat16)
    assert torch.equal(half, back.bfloat16())


def test_tokens_and_groups():
    x = torch.linspace(-2, 2, 16).reshape(2, 8)
    scales, zeros = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
    q = Q.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
    back = Q.dequantize_per_token(q, scales, zeros, -128, 127, torch.int8, torch.float32)
    assert bool(((back - x).abs() <= 0.5001 * scales).all())
    scales, zeros = torch.full((2, 2), 0.1), torch.zeros(2, 2)
    q = Q.quantize_per_channel_group(x, scales, zeros, -128, 127, torch.int8, 4)
    back = Q.dequantize_per_channel_group(q, scales, zeros, -128, 127, torch.int8, 4,
                                          torch.float32)
    assert bool(((back - x).abs() <= 0.0501).all())
    with pytest.raises(AssertionError, match="divisible by"):
        Q.quantize_per_channel_group(x, scales, zeros, -128, 127, torch.int8, 3)


def test_gradients_go_through_what_was_not_cut_off():
    x = torch.tensor([[-9.0, 0.3, 9.0]], requires_grad=True)
    y = Q.fake_quant_per_channel(x, torch.full((3,), 0.05), torch.zeros(3), 1, -128, 127)
    y.sum().backward()
    np.testing.assert_allclose(y.detach(), [[-6.4, 0.3, 6.35]], rtol=1e-6)
    assert x.grad.tolist() == [[0.0, 1.0, 0.0]]


def test_shapes_without_values():
    x = torch.empty(4, 8, device="meta")
    assert Q.quantize_per_tensor(x, 0.1, 0, 0, 255, torch.uint8).dtype is torch.uint8
    assert Q.choose_qparams.tensor(x, 0, 255, 1e-6, torch.uint8)[0].shape == (1,)
    assert Q.choose_qparams_per_token(x, torch.int8)[1].shape == (4, 1)


@pytest.mark.parametrize("call, error, says", [
    (lambda x: Q.quantize_per_tensor(x.double(), 0.1, 0, 0, 255, torch.uint8), AssertionError,
     "Expecting input to have dtype torch.float32, but got dtype: torch.float64"),
    (lambda x: Q.quantize_per_tensor(x, 0.1, 0, -129, 127, torch.int8), AssertionError,
     "quant_min out of bounds for dtype, quant_min_lower_bound: -128 quant_min: -129"),
    (lambda x: Q.quantize_per_tensor(x, 0.1, 0, 0, 3, torch.int64), ValueError,
     "Unsupported dtype: torch.int64"),
    (lambda x: Q.dequantize_per_tensor(x, 0.1, 0, 0, 255, torch.uint8), AssertionError,
     "Expecting input to have dtype: torch.uint8, but got torch.float32")])
def test_refusals(call, error, says):
    with pytest.raises(error, match=says):
        call(torch.ones(2))
