"""Filling tensors with random numbers: what in-place ops, new tensors and samples have in common.

A *fill* is a function that writes random numbers into an array; each distribution has a function
here that checks its arguments for a type and makes the fill. `draw_like` and `overwrite` apply it
to tensors.

Under `vmap` each level's `randomness` decides: "error" refuses, "same" draws once for all slices,
"different" draws for each.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from flambeau._support.c_functions import type_name as type_name_of
from flambeau._support.scopes import within
from flambeau._support.settings import warn_user
from flambeau.core import devices, dtypes, modes, type_info, views
from flambeau.core.calling import overrides
from flambeau.core.dtypes import from_numpy_dtype
from flambeau.core.generator import Generator, default_generator
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.op import passive
from flambeau.core.promotion import c_name, type_name
from flambeau.core.tensor import Tensor, as_leaf
from flambeau.dispatch.factory import finish
from flambeau.kernels.creation import random as kernels
from flambeau.kernels.dtypes import real_dtype
from flambeau.kernels.moving import views as memory
from flambeau.kernels.refused import characters, no_kernel
from flambeau.ops.factory.create import empty
from flambeau.transforms import meta

passive.add(Generator)
Fill = Callable[[np.ndarray], Any]


def stream_of(generator: Generator | None, name: str) -> kernels.Stream:
    """The stream that an op called `name` draws from."""
    if generator is None:
        return default_generator._stream
    if type(generator) is not Generator:
        raise TypeError(f"{name}(): argument 'generator' must be torch.Generator, not "
                        f"{type_name_of(generator)}")
    return generator._stream


# ---- levels of vmap -----------------------------------------------------------------------------

_REFUSED = {
    "error": "vmap: called random operation while in randomness error mode. Please either use the "
             "'same' or 'different' randomness flags on vmap or perform the randomness operation "
             "out of vmap",
    "never": "vmap: We do not yet support calling random operations inside of vmap. Please perform "
             "random operations outside of vmap as a workaround"}     # batches of gradients
SAME_BATCHED = ("Vmap does not currently support same randomness with a batched tensor input. "
                 "Please file an issue with functorch")
_DIFFERENT_UNBATCHED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear "
    "like same randomness. If this is necessary for your usage, please file an issue with "
    "functorch.")


def vmap_level() -> Any:
    """The innermost vmap around the call, if any; raises if it refuses random ops."""
    from flambeau.transforms.batching import BatchLevel
    for level in reversed(modes.levels.get()):
        if isinstance(level, BatchLevel):
            if level.randomness in _REFUSED:
                raise RuntimeError(_REFUSED[level.randomness])
            return level
    return None


def outside(level: Any, function: Any, *args: Any) -> Any:
    """Call a function outside of a level, and of those within."""
    stack = modes.levels.get()
    return within(modes.levels, stack[:stack.index(level)], function, *args)


# ---- filling ------------------------------------------------------------------------------------


def draw_like(shape: tuple[int, ...], array_type: np.dtype, fill: Fill, device: Any = devices.cpu,
              like: np.ndarray | None = None, requires_grad: bool = False) -> Tensor:
    """A new tensor that `fill` has filled, laid out as the array `like` is."""
    where = devices.checked(device)
    if where is not devices.cpu:
        return finish(meta.meta_array(shape, array_type), where, requires_grad)
    level = vmap_level() if interceptors else None
    if level is not None:
        different = level.randomness == "different"
        result = outside(level, draw_like, (level.size, *shape) if different else shape, array_type,
                         fill)
        result = level.wrap(result, 0) if different else result
        return as_leaf(result) if requires_grad else result
    if like is not None:
        array = memory.empty_like(like, array_type)
    elif interceptors:                  # those that watch see that memory is asked for
        array = empty(shape, dtype=from_numpy_dtype(array_type))._array
    else:
        array = np.empty(shape, array_type)
    fill(array)
    return finish(array, where, requires_grad)


def overwrite(tensor: Tensor, fill: Fill) -> Tensor:
    """Let `fill` write to `tensor`, and cut what it was out of the graph."""
    level = vmap_level() if interceptors else None
    if level is not None:
        if level.unwrap(tensor)[1] is not None:
            array = tensor._array
            return tensor.copy_(draw_like(array.shape, array.dtype, fill))
        if level.randomness == "different":
            raise RuntimeError(_DIFFERENT_UNBATCHED)
        return outside(level, overwrite, tensor, fill)
    if (interceptors and tensor._tangents) or type(tensor) in overrides.own_rules:
        return tensor.copy_(draw_like(tensor._array.shape, tensor._array.dtype, fill))
    views.check_inplace(tensor, False)
    if tensor._device is devices.cpu:
        fill(tensor._array)
    views.count_write(tensor)
    if tensor._edge is not None and grad_enabled():
        views.rebase_to_zero_grad(tensor)
    return tensor


def as_pairs(array: np.ndarray) -> np.ndarray:
    """The real and imaginary parts of a complex array, along a last dimension."""
    real = memory.part(array, "real")
    return np.lib.stride_tricks.as_strided(
        array.view(real.dtype) if array.flags.c_contiguous and array.ndim else real,
        (*array.shape, 2), (*array.strides, real.itemsize))


# ---- what each distribution checks, and how it fills --------------------------------------------


def refused(kernel: str, array_type: np.dtype) -> Fill:
    """The fill of a type that PyTorch's kernel lacks: it is asked only where there are elements."""
    def fill(array: np.ndarray) -> None:
        if array.size:
            raise no_kernel(kernel, array_type)
    return fill


def is_common(array_type: np.dtype) -> bool:
    """Real types but the wide unsigned ones: those that most of PyTorch's kernels know."""
    return array_type.char not in characters("UcW8")


def is_real(array_type: np.dtype) -> bool:
    return array_type in dtypes.FLOATING and array_type.char not in characters("cW8")


@cache
def _largest(array_type: np.dtype) -> float:
    return type_info.finfo(from_numpy_dtype(array_type)).max


def uniform_fill(array_type: np.dtype, low: Any, high: Any, generator: Any) -> Fill:
    low, high, stream = float(low), float(high), stream_of(generator, "uniform_")
    if array_type in kernels._FLOATS and low == 0.0 and high == 1.0:    # nothing to check
        return lambda array: kernels.uniform(stream, array)
    if array_type.kind in "cW":
        in_parts = uniform_fill(real_dtype(array_type), low, high, generator)
        return lambda array: in_parts(as_pairs(array))
    if not is_real(array_type):
        raise no_kernel("check_uniform_bounds", array_type)
    if (low, high) != (0.0, 1.0):
        top = _largest(array_type)
        for value, name in ((low, "from"), (high, "to")):
            if not -top <= value <= top:
                raise RuntimeError(f"{name} is out of bounds for {c_name(array_type)}")
        if low > high:
            raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from="
                               f"{low:g} > to={high:g}")
        if high - low > top:
            raise RuntimeError(
                "uniform_ expects to-from <= std::numeric_limits<"
                f"{type_name(from_numpy_dtype(array_type))}>::max(), but found to={high:g} and "
                f"from={low:g} which result in to-from to exceed the limit")
    return lambda array: kernels.uniform(stream, array, low, high)


def normal_fill(array_type: np.dtype, mean: Any, std: Any, generator: Any,
                stream: kernels.Stream | None = None) -> Fill:
    mean, std, stream = float(mean), float(std), stream or stream_of(generator, "normal_")
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if array_type.kind in "cW":
        std /= math.sqrt(2)
        return lambda array: kernels.normal(stream, as_pairs(array), mean, std)
    if not is_real(array_type):
        return refused("normal_kernel_cpu", array_type)
    return lambda array: kernels.normal(stream, array, mean, std)


def integer_fill(array_type: np.dtype, low: int, high: int, generator: Any) -> Fill:
    stream = stream_of(generator, "random_")
    if not low < high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= "
                           f"to={high}")
    if array_type.kind in "cW":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean "
                           "types")
    if array_type.char in characters("8"):
        return refused("random_update_from_to", array_type)
    if is_real(array_type):
        if low < -256 or high > 256:            # every type holds smaller integers
            low, high = _rounded_bounds(array_type, low, high)
    else:
        _check_bounds(array_type, low, high, _integer_limits(array_type))
    return lambda array: kernels.integers(stream, array, low, high)


@cache
def _integer_limits(array_type: np.dtype) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    if array_type.kind == "b":
        return 0, 1
    return np.iinfo(array_type).min, np.iinfo(array_type).max


def _check_bounds(array_type: np.dtype, low: int, high: int, limits: tuple[Any, Any]) -> None:
    for value, name in ((low, "from"), (high - 1, "to - 1")):
        if not limits[0] <= value <= limits[1]:
            raise RuntimeError(f"{name} is out of bounds for {c_name(array_type)}")


def _rounded_bounds(array_type: np.dtype, low: int, high: int) -> tuple[int, int]:
    """Bounds of integers that a floating type can hold: beyond its digits, multiples of powers."""
    top = _largest(array_type)
    _check_bounds(array_type, low, high, (-top, top))
    digits = kernels.digits(array_type)
    for value, name in ((low, "from"), (high - 1, "to - 1")):
        if not -(1 << digits) <= value <= 1 << digits:
            warn_user(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision "
                f"limitations {c_name(array_type)} can support discrete uniform "
                "distribution only within this range. This warning will become an error in "
                "version 1.7 release, please fix the code in advance")
    above, below = _round_to_type(array_type, low + 1), _round_to_type(array_type, high - 1)
    if above < low:
        low = above + (1 << (abs(low + 1).bit_length() - digits))
    if below >= high:
        high = below - (1 << (abs(high - 1).bit_length() - digits))
    if not low < high:
        raise RuntimeError("random_ expects 'from' casted to dtype to be less than 'to' casted to "
                           f"dtype, but got from={low} >= to={high}")
    return low, high


def _round_to_type(array_type: np.dtype, value: int) -> int:
    return int(np.float64(np.asarray(np.float64(value)).astype(array_type)))


_LOWEST = -1 << 63
_OF_64_BITS = ("int64", "float64", "float32", "bfloat16")


def full_range_fill(array_type: np.dtype, low: int | None, generator: Any) -> Fill:
    stream = stream_of(generator, "random_")
    whole = "random_full_64_bits_range_kernel_cpu"
    if not is_common(array_type) or (low == _LOWEST and array_type.kind == "b"):
        return refused(whole if low == _LOWEST else "random_kernel_cpu", array_type)
    if low == _LOWEST and array_type.name not in _OF_64_BITS:
        raise RuntimeError(f"{whole} handles only int64, double, float and bfloat16")
    return lambda array: kernels.random(stream, array, low)


def bernoulli_fill(array_type: np.dtype, p: float, generator: Any) -> Fill:
    p, stream = float(p), stream_of(generator, "bernoulli_")
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if not is_common(array_type):
        return refused("bernoulli_scalar_cpu_", array_type)
    return lambda array: kernels.bernoulli(stream, array, p)


def check_probabilities(p: np.ndarray) -> None:
    if not p.size:
        return
    if not is_real(p.dtype):
        raise no_kernel("bernoulli_tensor_cpu_p_", p.dtype)
    if not (p.min() >= 0 and p.max() <= 1):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
                           "(Could this error message be improved?  If so, please report an "
                           "enhancement request to PyTorch.)")
