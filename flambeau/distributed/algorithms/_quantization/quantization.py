"""`auto_quantize`: a collective whose float32 tensors travel as 16 bits."""
from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Enum
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist

TORCH_HALF_MIN = flambeau.finfo(flambeau.float16).min
TORCH_HALF_MAX = flambeau.finfo(flambeau.float16).max


class DQuantType(Enum):
    """The types in which tensors travel: float16, or the upper half of a float32."""
    FP16 = ("fp16",)
    BFP16 = "bfp16"

    def __str__(self) -> str:
        return self.name.lower()


def _fp32_to_fp16_with_clamp(tensor: Tensor) -> Tensor:
    return tensor.clamp(TORCH_HALF_MIN, TORCH_HALF_MAX).half()


def _quantize_tensor(tensor: Tensor, qtype: DQuantType) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise RuntimeError("_quantize_tensor expecting torch.Tensor as input but found "
                           f"{type(tensor)}")
    if qtype == DQuantType.FP16:
        return _fp32_to_fp16_with_clamp(tensor)
    if qtype == DQuantType.BFP16:
        bits = tensor.contiguous().view(flambeau.int32)
        return ((bits + (1 << 15)) >> 16).to(flambeau.int16).view(flambeau.float16)
    raise RuntimeError(f"Quantization type {qtype} is not supported")


def _quantize_tensor_list(tensor_list: list[Tensor], qtype: DQuantType) -> list[Tensor]:
    _check_list(tensor_list, "_quantize_tensor_list")
    return [_quantize_tensor(tensor, qtype) for tensor in tensor_list]


def _check_list(tensors: Any, function: str) -> None:
    if not isinstance(tensors, list) or not all(isinstance(t, Tensor) for t in tensors):
        raise RuntimeError(f"{function} expecting list of torch.Tensor as input but found "
                           f"{type(tensors)}")


def _dequantize_tensor(tensor: Tensor, qtype: DQuantType, quant_loss: Any = None) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise RuntimeError("_dequantize_tensor expecting torch.Tensor as input but found "
                           f"{type(tensor)}")
    if qtype not in (DQuantType.FP16, DQuantType.BFP16):
        raise RuntimeError(f"Quantization type {qtype} is not supported")
    if tensor.dtype != flambeau.float16:
        raise RuntimeError(f"tensor dtype is {tensor.dtype} while expected to be FP16.")
    if qtype == DQuantType.BFP16:
        return (tensor.view(flambeau.int16).to(flambeau.int32) << 16).view(flambeau.float32)
    return tensor.float() if quant_loss is None else tensor.float() / quant_loss


def _dequantize_tensor_list(tensor_list: list[Tensor], qtype: DQuantType,
                            quant_loss: Any = None) -> list[Tensor]:
    _check_list(tensor_list, "_dequantize_tensor_list")
    return [_dequantize_tensor(tensor, qtype) for tensor in tensor_list]


def auto_quantize(func: Callable[..., Any], qtype: DQuantType,
                  quant_loss: Any = None) -> Callable[..., None]:
    """`all_gather`, `all_to_all` or `all_to_all_single`, whose tensors travel as `qtype`."""
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        group = kwargs.get("group")
        if kwargs.get("async_op", False):
            raise RuntimeError("The async_op=True mode is not supported yet.")
        if func not in (dist.all_gather, dist.all_to_all, dist.all_to_all_single):
            raise RuntimeError(f"The collective op {func} is not supported yet")
        outputs, inputs = args[:2]
        if func is dist.all_to_all_single:
            found = _quantize_tensor(outputs, qtype)
            dist.all_to_all_single(found, _quantize_tensor(inputs, qtype),
                                   kwargs.get("out_splits"), kwargs.get("in_splits"), group)
            outputs.copy_(_dequantize_tensor(found, qtype, quant_loss))
            return
        quantize = _quantize_tensor_list if func is dist.all_to_all else _quantize_tensor
        parts = _quantize_tensor_list(outputs, qtype)
        func(parts, quantize(inputs, qtype), group)
        for i, value in enumerate(_dequantize_tensor_list(parts, qtype, quant_loss)):
            outputs[i] = value
    return wrapper
