"""What pooling requires of its arguments, in PyTorch's words, and what they come to."""
from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from flambeau.core.promotion import type_name
from flambeau.core.shapes import extents_of
from flambeau.core.tensor import Tensor
from flambeau.kernels.moving.layouts import has_channels_last
from flambeau.kernels.network import pooling as kernels
from flambeau.kernels.refused import characters, no_kernel, refuse

_BOUND = 2 ** 31
_WORDS = {2: "two", 3: "three"}


def per_axis(value: Any, n: int, op: str, name: str) -> tuple[int, ...]:
    """A number for each of `n` dimensions, where one stands for all, in 32 bits."""
    found = _per_axis(value, n, op, name)
    if not -_BOUND <= min(found) <= max(found) < _BOUND:
        raise RuntimeError("value cannot be converted to type int without overflow")
    return found


def _per_axis(value: Any, n: int, op: str, name: str) -> tuple[int, ...]:
    if type(value) is int:
        return (value,) * n
    if isinstance(value, (tuple, list)):
        given = tuple([index(v) for v in value])
        if len(given) == 1:
            return given * n
        if len(given) == n:
            return given
    elif hasattr(value, "__index__"):
        return (value.__index__(),) * n
    takes = "be either" if name == "dilation" else "either be"
    if name == "stride":
        takes += " omitted,"
    if op == "avg_pool3d":
        takes = takes.replace("either be", "be")
    raise RuntimeError(f"{op}: {name} must {takes} a single int, or a tuple of {_WORDS[n]} ints")


def strides(stride: Any, kernel: tuple[int, ...], op: str) -> tuple[int, ...]:
    """The steps between windows: those of the windows' own size if none are given."""
    return per_axis(stride, len(kernel), op, "stride") if stride else kernel


def _too_much_padding(pad: int, kernel: int, dilation: int) -> RuntimeError:
    return RuntimeError("pad should be at most half of effective kernel size, but got "
                        f"pad={pad}, kernel_size={kernel} and dilation={dilation}")


def check_windows(x: np.ndarray, kernel: Any, stride: Any, padding: Any, dilation: Any,
                   ceil_mode: bool, name: str) -> None:
    n = len(kernel)
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    for p, k, d in zip(padding, kernel, dilation):
        if k <= 0 <= p and p > int(((k - 1) * d + 1) / 2):      # half of it is a bound already
            raise _too_much_padding(p, k, d)
    for what, letter, sizes in (("kernel size", "k", kernel), ("stride", "d", stride)):
        if min(sizes) <= 0:
            named = " ".join(f"{letter}{a}: {s}" for a, s in zip("THW"[-n:], sizes))
            raise RuntimeError(f"{what} should be greater than zero, but got {named}")
    if min(dilation) <= 0:
        named = " ".join(f"dilation{a}: {d}" for a, d in zip("THW"[-n:], dilation))
        raise RuntimeError(f"dilation should be greater than zero, but got {named}")
    for p, k, d in zip(padding, kernel, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (k - 1) * d // 2 + (0 if d > 1 else (k % 2 == 0)):
            raise _too_much_padding(p, k, d)
    if name == "avg_pool3d" and any(s < k for s, k in zip(x.shape[-3:], kernel)):
        raise RuntimeError("input image (T: {} H: {} W: {}) smaller than kernel size (kT: {} kH: {}"
                           " kW: {})".format(*x.shape[-3:], *kernel))
    inner = x.shape[x.ndim - n - 1:]
    if 0 in inner and n == 3:
        raise RuntimeError(f"{name}(): Expected input's non-batch dimensions to have positive "
                           f"length, but input has a shape of {list(x.shape)} and non-batch "
                           f"dimension {max(inner.index(0) - 1, 0)} has length zero!")
    if 0 in inner:
        raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim "
                           f"batch size for input, but got:{list(x.shape)}")
    size = x.shape[-n:]
    out = [kernels.pooled_size(*a, ceil_mode) for a in zip(size, kernel, stride, padding, dilation)]
    if min(out) < 1:
        channels = x.shape[-n - 1]
        raise RuntimeError(f"Given input size: ({_by(channels, size)}). Calculated output size: "
                           f"({_by(channels, out)}). Output size is too small")


def _by(channels: int, size: Any) -> str:
    return "x".join(map(str, (channels, *size)))


def check_rank(x: np.ndarray, n: int) -> None:
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")


def single(value: Any, op: str = "", name: str = "") -> int:
    if isinstance(value, int):
        return value
    if len(value) != 1:
        raise RuntimeError(f"{op}() argument '{name}' should contain one int (got {len(value)})")
    return index(value[0])


def check_line(x: np.ndarray, kernel: int, stride: int, padding: int, dilation: int,
                ceil_mode: bool) -> None:
    """What `max_pool1d` says of its arguments where nobody asks for indices."""
    if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
        raise RuntimeError("max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim "
                           f"batch size for input, but got:{list(x.shape)}")
    for what, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError("max_pool1d() padding should be at most half of kernel size, but got "
                           f"padding={padding} and kernel_size={kernel}")
    size = kernels.pooled_size(x.shape[-1], kernel, stride, padding, dilation, ceil_mode)
    if size <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")


def check_one_dimensional(input: Tensor, name: str) -> None:
    if input._array.ndim not in (2, 3):
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {input._array.ndim}-dimensional "
                           f"tensor for argument #1 'self' (while checking arguments for {name})")


def adaptive_sizes(n: int, input: Tensor, output_size: Any, name: str) -> tuple[int, ...]:
    """One size for each dimension."""
    x, largest = input._array, "max" in name
    if len(output_size) != n and not largest:
        raise RuntimeError(f"{name}: output_size must be {n}")
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got"
                           f"{':' * largest} {list(x.shape)}")
    if len(output_size) != n:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {n}")
    for d in range(1 if largest else x.ndim - n, x.ndim):
        if not x.shape[d]:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch "
                               f"dimensions, but input has sizes {list(x.shape)} with dimension "
                               f"{d} being empty")
    sizes = tuple([int(o) for o in output_size])
    if largest:
        extents_of((*x.shape[:-n], *sizes))
    elif min(sizes) < 0:
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 "
                           f"but received {{{sizes[0]}, {','.join(map(str, sizes[1:]))}}}")
    return sizes


def sizes_or_own(output_size: Any, input: Tensor) -> Any:
    """The sizes, with the input's for those that are None."""
    if isinstance(output_size, int):
        input.size()                                # of tensors only
        return output_size
    shape = input.size()
    if len(shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    return [own if size is None else size
            for size, own in zip(output_size, shape[-len(output_size):])]


def check_not_empty(grad: Tensor, name: str) -> None:
    """Refuse a gradient without elements, but for one of no images."""
    shape = grad._array.shape
    for dim, size in enumerate(shape[1:], 1):
        if not size:
            raise RuntimeError(f"{name}(): Expected grad_output to have non-zero size for "
                               f"non-batch dimensions, but grad_output has sizes {list(shape)} "
                               f"with dimension {dim} being empty")


def fractional_windows(input: Tensor, kernel_size: Any, output_size: Any, random_samples: Tensor,
                       n: int) -> tuple[Any, ...]:
    """The canonical arguments of fractional pooling: where the input has no batch, one sample."""
    name, x, samples = f"fractional_max_pool{n}d", input._array, random_samples
    for given, what in ((kernel_size, "kernel_size"), (output_size, "output_size")):
        if isinstance(given, (tuple, list)) and len(given) != n:
            raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of "
                               f"{'three ' * (n == 3)}Ints")
    kernel = per_axis(kernel_size, n, name, "kernel_size")
    sizes = per_axis(output_size, n, name, "output_size")
    out = "_out" if n == 3 else ""
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}{out}(): Expected {n + 1}D or {n + 2}D tensor, but got: "
                           f"{list(x.shape)}")
    if 0 in x.shape[1:]:
        at = 1 + x.shape[1:].index(0)
        raise RuntimeError(f"{name}{out}(): Expected input to have non-zero size for non-batch "
                           f"dimensions, but got{list(x.shape)} with dimension {at} being empty.")
    for axis, k, s, o in zip(("time", "height", "width")[-n:], kernel, x.shape[-n:], sizes):
        if o + k - 1 > s - (n == 3):       # PyTorch leaves a row over in three dimensions
            raise RuntimeError(f"{name}{out}(): pool {axis} {k} too large "
                               f"relative to input {axis} {s}")
    extents_of((*x.shape[:-n], *sizes))
    if samples._array.dtype != x.dtype and not input.is_meta:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    batch = 1 if x.ndim == n + 1 else x.shape[0]
    samples = _checked_samples(samples, batch, x.shape[-n - 1], n)
    refuse(x, "bBilUcW8", f"{name}_out_frame")
    return input, samples[0] if x.ndim == n + 1 else samples, kernel, sizes


def _checked_samples(samples: Tensor, batch: int, channels: int, n: int) -> Tensor:
    shape = samples._array.shape
    if len(shape) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(shape)}")
    if shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if shape[2] != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {shape[2]}.")
    return samples[:batch]


def refuse_images(x: np.ndarray, kinds: str, name: str) -> None:
    """Raise that PyTorch's kernel for images of this order does not take their type."""
    if x.dtype.char in characters(kinds):
        raise no_kernel(name + "_channels_last" * has_channels_last(x), x.dtype)


def unpooled_size(input: Tensor, kernel: Any, stride: Any, padding: Any, output_size: Any) -> Any:
    size, n = input.size(), len(kernel)
    usual = [(size[d - n] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        for d, u in enumerate(usual):
            if u < 0:
                raise ValueError("max_unpooling: output_size must contain non-negative spatial "
                                 f"dimensions, but got output_size[{d}]={u}")
        return tuple(usual)
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, "
                         f"but it has a length of '{len(output_size)}'")
    for d, (o, u, s) in enumerate(zip(output_size, usual, stride)):
        if not u - s < o < u + s:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between '
                             f"{u - s} and {u + s})")
    return tuple(output_size)


def check_unpooling(input: Tensor, indices: Tensor, n: int) -> None:
    x, i = input._array, indices._array
    if i.dtype != np.int64:
        raise RuntimeError("elements in indices should be type int64" + (
            "" if n == 3 else f" but got: {type_name(indices.dtype)}"))
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, "
                           f"but got a tensor with {x.ndim} dimensions.")
    if x.shape != i.shape:
        raise RuntimeError("Expected shape of indices to be same as that of the input tensor "
                           f"({list(x.shape)}) but got indices tensor with shape: {list(i.shape)}")
