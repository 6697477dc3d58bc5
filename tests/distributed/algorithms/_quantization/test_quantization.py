"""Gradients in 16 bits on their way."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.algorithms._quantization.quantization import (
    DQuantType,
    _dequantize_tensor,
    _quantize_tensor,
    auto_quantize,
)


def test_16_bits():
    # Values of PyTorch's op: halves are rounded up.
    x = torch.tensor([[1.00390625, -1.01171875, 3.14159265, 1e38, float("inf")]])
    half = _quantize_tensor(x, DQuantType.BFP16)
    assert half.view(torch.int16).tolist() == [[16257, -16510, 16457, 32406, 32640]]
    assert _dequantize_tensor(half, DQuantType.BFP16)[0, 0].item() == 1.0078125
    assert _quantize_tensor(torch.tensor([1e6]), DQuantType.FP16).item() == 65504
    with pytest.raises(RuntimeError, match="async_op=True mode is not supported"):
        auto_quantize(dist.all_gather, DQuantType.FP16)([], x, async_op=True)
    with pytest.raises(RuntimeError, match=r"tensor dtype is torch.float32 while expected"):
        _dequantize_tensor(x, DQuantType.FP16)
