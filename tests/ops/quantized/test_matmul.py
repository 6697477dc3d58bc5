"""Products with matrices of few bits, against the same products of the numbers they stand for."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch


def integers(seed, shape, low=-128, high=128, dtype=torch.int8):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, shape, generator=generator, dtype=torch.int32).to(dtype)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 5), st.integers(1, 40), st.integers(1, 9), st.integers(0, 99))
def test_integers(n, k, m, seed):
    a, b = integers(seed, (n, k)), integers(seed + 1, (m, k)).T
    result = torch._int_mm(a, b)
    assert result.dtype is torch.int32
    np.testing.assert_array_equal(result.numpy(), a.numpy().astype(int) @ b.numpy().astype(int))
    out = torch.empty(n, m, dtype=torch.int32)
    assert torch._int_mm(a, b, out=out) is out and torch.equal(out, result)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_8_bit_weights(dtype):
    x, w = torch.randn(5, 32).to(dtype), integers(3, (16, 32))
    scales = (torch.rand(16) + 0.1).to(dtype)
    expected = x.double() @ (w.double() * scales.double()[:, None]).T
    result = torch._weight_int8pack_mm(x, w, scales)
    assert result.dtype is dtype
    torch.testing.assert_close(result.double(), expected, rtol=1e-2, atol=0.3)


@pytest.mark.parametrize("rows", [16, 48, 64, 112, 128])
def test_4_bit_weights(rows):
    q = integers(5, (rows, 64), 0, 16, torch.int32)
    packed = torch._convert_weight_to_int4pack_for_cpu(q, 1)
    assert packed.dtype is torch.uint8 and packed.shape == (rows, 32)
    x, parameters = torch.randn(3, 64), torch.rand(2, rows, 2)
    scale, zero = (v.T.repeat_interleave(32, 1) for v in parameters.unbind(2))
    expected = x @ ((q - 8) * scale + zero).T
    result = torch._weight_int4pack_mm_for_cpu(x, packed, 32, parameters)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize("has_bias", [False, True])
def test_rows_rounded_on_the_way(block, has_bias):
    w = integers(7, (16, 32), 0, 256, torch.uint8)
    scales = torch.rand(16, 64 // block) + 0.1
    bias = torch.randn(16) if has_bias else None
    packed = torch._dyn_quant_pack_4bit_weight(w, scales, bias, block, 64, 16)
    x = torch.randn(3, 64)
    result = torch._dyn_quant_matmul_4bit(x, packed, block, 64, 16)
    q = torch.stack([w & 15, w >> 4], 2).reshape(16, 64).float() - 8
    weight = q * scales.repeat_interleave(block, 1)
    exact = x @ weight.T + (0 if bias is None else bias)
    step = (x.amax(1).clamp(min=0) - x.amin(1).clamp(max=0)) / 255
    assert bool(((result - exact).abs() <= 0.51 * step[:, None] * weight.abs().sum(1) + 1e-3).all())


def test_8_bit_floats():
    a = torch.randn(4, 16).to(torch.float8_e4m3fn)
    b = torch.randn(8, 16).to(torch.float8_e4m3fn).T
    rows, columns = torch.rand(4, 1), torch.rand(1, 8)
    expected = (a.float() * rows) @ (b.float() * columns)
    result = torch._scaled_mm(a, b, rows, columns, out_dtype=torch.float32)
    torch.testing.assert_close(result, expected)
    half, bias = torch.tensor(0.5), torch.randn(8)
    result = torch._scaled_mm(a, b, half, half, bias=bias, out_dtype=torch.float32)
    torch.testing.assert_close(result, a.float() @ b.float() / 4 + bias)
    assert torch._scaled_mm(a, b, half, half).dtype is torch.float8_e4m3fn
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(a.float(), b, half, half)
    with pytest.raises(RuntimeError, match="4x16 and 8x16"):
        torch._scaled_mm(a, b.T, half, half)


@pytest.mark.parametrize("call, says", [
    (lambda: torch._int_mm(integers(0, (3, 4)), integers(0, (3, 4))),
     r"self.size\(1\) needs to match mat2.size\(0\) but got 4 and 3"),
    (lambda: torch._int_mm(torch.ones(3, 4), integers(0, (4, 4))),
     "Expected self dtype to be int8 or uint8 but got float"),
    (lambda: torch._weight_int8pack_mm(torch.ones(2, 4), integers(0, (3, 4)), torch.ones(2)),
     "expect scales to be 1d tensor with size 3"),
    (lambda: torch._convert_weight_to_int4pack_for_cpu(torch.ones(3, 4, dtype=torch.int32), 1),
     "expect N to be dividable by 16")])
def test_refusals(call, says):
    with pytest.raises(RuntimeError, match=says):
        call()


def test_private_names_of_the_dispatchers_ops():
    pair = [torch.ones(2), torch.zeros(2)]
    assert torch.equal(torch._stack(pair, 1), torch.stack(pair, 1))
    assert hasattr(torch, "_is_all_true") and not hasattr(torch, "_no_such_op")
