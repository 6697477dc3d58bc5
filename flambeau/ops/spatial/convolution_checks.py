"""What a convolution asks of its arguments."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import flambeau
from flambeau.core.promotion import c_name, type_name
from flambeau.core.tensor import Tensor
from flambeau.kernels.refused import refuse
from flambeau.ops.out_types import can_cast


def numbers(value: Any, n: int, name: str) -> tuple[int, ...]:
    """A number for each of `n` dimensions, where one stands for all."""
    if isinstance(value, int):
        return (value,) * n
    given = tuple([index(v) for v in value])
    if len(given) == 1:
        return given * n
    if len(given) != n:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {n} values "
                           f"to match the convolution dimensions, but got {name}={list(given)}")
    return given


def check_geometry(input: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any,
                   dilation: Any, transposed: bool, output_padding: Any, groups: int
                   ) -> tuple[Any, ...]:
    x, w = input._array, weight._array
    if len(stride) not in (1, w.ndim - 2):
        raise RuntimeError(f"expected stride to be a single integer value or a list of {w.ndim - 2}"
                           " values to match the convolution dimensions, but got stride="
                           f"{list(stride)}")
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) == 0 and x.shape[0] > 1 and x.dtype.name in ("float32", "bfloat16"):
        raise RuntimeError("non-positive dilation is not supported")
    if min(dilation) <= 0:
        wide = (1, *dilation) if len(dilation) == 1 else dilation
        raise RuntimeError("dilation should be greater than zero"
                           + (f", but got {list(wide)}" if min(dilation) == 0 else ""))
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if 0 in w.shape[2:]:
        names = ("kernel_depth", "kernel_height", "kernel_width")[5 - w.ndim:]
        raise RuntimeError("kernel size should be greater than zero, but got " + " ".join(
            f"{name}: {n}" for name, n in zip(names, w.shape[2:])))
    check_dimensions(x, w)
    _check_channels(x.shape, w.shape, bias, transposed, groups)
    if not transposed:
        padded = [s + 2 * p for s, p in zip(x.shape[2:], padding)]
        reach = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation)]
        if any(p < r for p, r in zip(padded, reach)):
            raise RuntimeError(
                f"Calculated padded input size per channel: ({_format_sizes(padded)}). Kernel "
                f"size: ({_format_sizes(reach)}). Kernel size can't be greater than actual input "
                "size")
    elif min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    elif any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation)):
        raise _output_padding_error(output_padding, stride, dilation)
    else:
        extents = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, s, p, d, k, o in zip(
            x.shape[2:], stride, padding, dilation, w.shape[2:], output_padding)]
        if min(extents) < 1 and 0 not in x.shape[2:]:
            one = [1] if len(extents) == 1 else []          # computed as one row
            raise RuntimeError(
                f"Given input size per channel: ({_format_sizes([*one, *x.shape[2:]])}). "
                f"Calculated output size per channel: ({_format_sizes([*one, *extents])}). Output "
                "size is too small")
    if 0 in x.shape[2:] and x.shape[0] and x.shape[1]:
        shape = list(x.shape if x.ndim > 3 else (*x.shape[:2], 1, x.shape[2]))
        raise RuntimeError("Only zero batch or zero channel inputs are supported, but got input "
                           f"shape: {shape}")
    if x.dtype is not w.dtype and x.dtype != w.dtype:
        by_library = by_onednn(x, w, stride, dilation, groups)
        if transposed and not by_library:
            refuse(x, "bBiU8", f"slow_conv_transpose{max(x.ndim - 2, 2)}d_out_cpu")
        raise _mixed_types("weight", input, weight, by_library)
    return stride, padding, dilation, transposed, output_padding, groups


def by_onednn(x: Any, w: Any, stride: Any, dilation: Any, groups: int) -> bool:
    """Whether PyTorch would give it to oneDNN, which says of types what its own kernels do not."""
    kernel = w.shape[-2:] if w.ndim > 3 else (1, w.shape[-1])
    lean = (max(*stride, *dilation) == 1 and x.shape[0] < 16 and kernel == (1, 1)
            and flambeau.get_num_threads() == 1)
    large = (groups > 1 or min(kernel) > 3 or x.shape[0] > 1
             or x.shape[0] * x.shape[1] * math.prod(x.shape[2:4]) > 20480)
    return x.dtype == "float32" and large and not lean


def stored_bias(input: Tensor, weight: Tensor, bias: Tensor, transposed: bool, stride: Any,
                dilation: Any, groups: int) -> Tensor:
    """A bias of another type, in that of the result."""
    by_library = by_onednn(input._array, weight._array, stride, dilation, groups)
    if by_library or input.is_complex():
        raise _mixed_types("bias", input, bias, by_library)
    if weight._array.ndim == 5:
        raise _mixed_types("bias", input, bias, by_library)
    if transposed and not can_cast(bias.dtype, input.dtype):
        both = type_name(flambeau.promote_types(input.dtype, bias.dtype))
        raise RuntimeError(f"result type {both} can't be cast to the desired output type "
                           f"{type_name(input.dtype)}")
    return bias.to(input.dtype)


def _mixed_types(name: str, input: Tensor, other: Tensor, by_library: bool) -> RuntimeError:
    own, its = type_name(input.dtype), type_name(other.dtype)
    if not by_library and not input.is_complex():
        return RuntimeError(f"expected scalar type {own} but found {its}")
    types = " and ".join(
        f"{what} type (" + (f"CPU{n}Type" if n.startswith(("Complex", "BFloat")) else
                            f"torch.{n}Tensor") + ")"
        for what, n in (("Input", own), (name, its)))
    return RuntimeError(f"{types} should be the same" + (
        f" or input should be a MKLDNN tensor and {name} is a dense tensor" * by_library))


def check_bias(input: Tensor, bias: Tensor | None) -> None:
    """That a bias has the type of the input."""
    if bias is not None and bias._array.dtype != input._array.dtype:
        raise RuntimeError(f"Input type ({c_name(input.dtype)}) and bias type "
                           f"({c_name(bias.dtype)}) should be the same")


def check_dimensions(x: Any, w: Any, space: str = " ") -> None:
    if w.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if w.ndim != x.ndim:
        raise RuntimeError(f"Expected {w.ndim}-dimensional input for {w.ndim}-dimensional "
                           f"weight{space}{list(w.shape)}, but got {x.ndim}-dimensional "
                           f"input of size {list(x.shape)} instead")


def _check_channels(x: Any, w: Any, bias: Any, transposed: bool, groups: int) -> None:
    if w[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at "
                           f"dimension 0, but got weight of size {list(w)} instead")
    if w[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at "
                           f"dimension 0, but got weight of size [{list(w)}] instead")
    expected = w[0] if transposed else w[1] * groups
    if x[1] != expected:
        how = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(f"Given {how}, weight of size {list(w)}, expected input{list(x)} to "
                           f"have {expected} channels, but got {x[1]} channels instead")
    outputs = w[1] * groups if transposed else w[0]
    if bias is not None and bias._array.shape != (outputs,):
        how = "transposed=1, " if transposed else ""
        raise RuntimeError(f"Given {how}weight of size {list(w)}, expected bias to be "
                           f"1-dimensional with {outputs} elements, but got bias of size "
                           f"{list(bias._array.shape)} instead")


def _output_padding_error(output_padding: Any, stride: Any, dilation: Any) -> RuntimeError:
    if len(stride) == 1:                        # PyTorch makes it one of images
        output_padding, stride, dilation = (0, *output_padding), (1, *stride), (1, *dilation)
    axes = ("depth", "height", "width")[-len(stride):]
    parts = [f"{name}_{axis}: {v}" for name, values in
             (("output_padding", output_padding), ("stride", stride), ("dilation", dilation))
             for axis, v in zip(axes, values)]
    return RuntimeError("output padding must be smaller than either stride or dilation, but got "
                        + " ".join(parts))


def _format_sizes(sizes: Any) -> str:
    return " x ".join(map(str, sizes))
