"""Numbers at equal steps: arange, linspace, logspace."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau._support.settings import warn_user
from flambeau.core.dtypes import as_numpy_dtype, default_float, from_numpy_dtype
from flambeau.core.promotion import convert, type_name
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.factory import OPTIONS, factory
from flambeau.kernels.refused import characters, no_kernel
from flambeau.ops.coercion import as_element, too_large
from flambeau.ops.pointwise.arithmetic import pow
from flambeau.ops.view.conversion import cast


def other_count(before: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The warning of an `out` that has another number of elements than a range."""
    return (f"The number of elements in the out tensor of shape {list(before)} is "
            f"{math.prod(before)} which does not match the computed number of elements "
            f"{shape[0]}. Note that this may occur as a result of rounding error. The out tensor "
            f"will be resized to a tensor of shape ({shape[0]},).")


arange = factory(
    f"arange(Scalar end, *, {OPTIONS}) -> Tensor",
    f"arange.start(Scalar start, Scalar end, *, {OPTIONS}) -> Tensor",
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor",
    kernel=lambda start, end, step, target: _range(start, end, step, target), native="arange",
    type="whole", missing={"start": 0, "step": 1}, out=("", "start_step"), counted=True,
    out_resized=other_count,
    doc="""The numbers start, start + step, … below `end`.

    int64 if all three are integers, else the default floating type.

    >>> import flambeau
    >>> flambeau.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """)


def _range_step_kernel(start: Any, end: Any, step: Any, target: np.dtype) -> np.ndarray:
    warn_user("torch.range is deprecated and will be removed in a future release because its "
              "behavior is inconsistent with Python's range builtin. Instead, use torch.arange, "
              "which produces values in [start, end).")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1
    return (start + np.arange(count, dtype=np.float64) * step).astype(target)


up_to = factory(
    f"range.step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor",
    kernel=_range_step_kernel, missing={"step": 1}, out=True, counted=True,
    doc="""start, start + step, … up to `end`, which is included; `arange` is what others have.

    >>> import flambeau, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     flambeau.range(1, 3)
    tensor([1., 2., 3.])
    """)


def _range(start: Any, end: Any, step: Any, target: np.dtype) -> np.ndarray:
    """How many numbers there are is found in float64; for int64, in integers."""
    if target.char in characters("bUcW8"):
        raise no_kernel("arange_cpu", target)
    wide = np.dtype(np.int64 if target.kind in "ui" else np.float64)
    if any(isinstance(v, complex) for v in (start, end, step)):
        raise too_large(wide)
    if step == 0 or step != step:
        raise RuntimeError("step must be nonzero")
    if not all(math.isfinite(v) for v in (start, end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = target.kind in "ui"
    if target == np.int64:
        if int(step) == 0:
            raise ValueError("step must be nonzero")
        return np.arange(*[as_element(v, target) for v in (start, end, step)], dtype=np.int64)
    count = math.ceil((end - start) / step)
    if count >= 2**60:
        raise RuntimeError("invalid size, possible overflow?")
    if target.kind == "f" and target.itemsize >= 4:
        return _in_lanes(float(start), float(step), count, target)
    first, by = (int(start), int(step)) if whole else (start, step)
    return convert(np.asarray(first + np.arange(count, dtype=wide) * by), target)


def _spaced_kernel(name: str, start: Any, end: Any, steps: int, base: float | None,
                    target: np.dtype
                    ) -> np.ndarray:
    """Numbers between two bounds, or the powers of `base` to them."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if target.char in characters("bUW8") and steps > 1:
        raise no_kernel(f"{name}_cpu", target)
    if target.kind not in "cW" and (isinstance(start, complex) or isinstance(end, complex)):
        inferred = "double" if default_float().itemsize == 8 else "float"
        raise RuntimeError(f"torch.{name}(): inferred dtype c10::complex<{inferred}> can't be "
                           f"safely cast to passed dtype {type_name(from_numpy_dtype(target))}")
    if base is None:
        return evenly_spaced(start, end, steps, target)
    wide = np.dtype(np.complex128 if target.kind in "cW" else np.float64)
    return convert(np.power(float(base), evenly_spaced(start, end, steps, wide)), target)


def _overloads_with_tensors(name: str, more: str = "") -> list[str]:
    """The overloads of linspace and logspace, whose bounds may be tensors."""
    kinds = (("", "Scalar", "Scalar"), (".Tensor_Tensor", "Tensor", "Tensor"),
             (".Tensor_Scalar", "Tensor", "Scalar"), (".Scalar_Tensor", "Scalar", "Tensor"))
    return [f"{name}{overload}({a} start, {b} end, int steps{more}, *, {OPTIONS}) -> Tensor"
            for overload, a, b in kinds]


linspace = factory(
    *_overloads_with_tensors("linspace"), native="linspace", type="floating", out=True,
    counted=True,
    kernel=lambda start, end, steps, target: _spaced_kernel("linspace", start, end, steps, None,
                                                            target),
    slices=lambda start, end, steps, dtype: _slices_spaced(start, end, steps, None, dtype),
    doc="""`steps` numbers evenly spaced from `start` to `end`, both included.

    >>> import flambeau
    >>> flambeau.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """)
logspace = factory(
    *_overloads_with_tensors("logspace", ", float base=10.0"), native="logspace", type="floating",
    out=True, counted=True,
    kernel=lambda start, end, steps, base, target: _spaced_kernel(
        "logspace", start, end, steps, base, target),
    slices=lambda start, end, steps, base, dtype: _slices_spaced(start, end, steps, base, dtype),
    doc="`base` to the powers of `linspace(start, end, steps)`.")


def _slices_spaced(start: Any, end: Any, steps: int, base: float | None, dtype: Any) -> Tensor:
    """The same for each slice of a batch: start + k · (end - start) / (steps - 1)."""
    target = default_float() if dtype is None else as_numpy_dtype(dtype)
    work = target
    if base is not None or target.kind in "bui":
        work = np.dtype(np.complex128 if target.kind in "cW" else np.float64)
    first, last = [cast(cast(t, target) if base is None else t, work)
                   if isinstance(t, Tensor) else t for t in (start, end)]
    result = first + (last - first) * wrap(evenly_spaced(0.0, 1.0, steps, work))
    return cast(result if base is None else pow(float(base), result), target)


def evenly_spaced(start: Any, end: Any, steps: int, target: np.dtype) -> np.ndarray:
    """The first half counts from `start`, the second back from `end`, in the result's type."""
    if steps == 1:
        return convert(np.array([start]), target)
    work = target if target.kind in "fcV" else np.dtype(np.float32)
    if target.kind in "ui":
        start, end, work = as_element(start, target), as_element(end, target), np.dtype(np.float64)
    first, last = np.asarray(start, work), np.asarray(end, work)
    step = (last - first) / np.asarray(max(steps - 1, 1), work)
    half = steps // 2
    array = np.concatenate([_fused_multiply_add(step, np.arange(half), first),
                            _fused_multiply_add(-step, np.arange(steps - 1 - half, -1, -1), last)])
    return convert(array.astype(work), target)


def _in_lanes(start: float, step: float, count: int, target: np.dtype) -> np.ndarray:
    """start + k · step as PyTorch's vectors of 32 bytes compute it: their first elements from
    `start`, the others from the first; those that do not fill two vectors, alone."""
    if start.is_integer() and step.is_integer():    # exact in any order
        return (start + np.arange(count) * step).astype(target)
    at = _fused_multiply_add if target == np.float64 else _for_floats
    lanes = 32 // target.itemsize
    whole = count - count % (2 * lanes)
    rest = at(step, np.arange(whole, count), start).astype(target)
    if not whole:
        return rest
    first = at(step, np.arange(0, whole, lanes), start).astype(target).astype(np.float64)
    vectors = at(step, np.arange(lanes), first[:, None]).astype(target)
    return np.concatenate([vectors.reshape(-1), rest])


def _for_floats(step: float, index: np.ndarray, base: Any) -> np.ndarray:
    """The same in double as exactly as float32 can tell: only where terms cancel can it."""
    total = base + index * step
    most = abs(base) if type(base) is float else np.abs(base).max()
    moved = total[..., 1:] if len(index) and not index[0] else total
    if most and moved.size and np.abs(moved).min() < 1e-7 * most:
        return _fused_multiply_add(step, index, base)
    return total


@kernels.quiet
def _fused_multiply_add(step: Any, index: np.ndarray, base: Any) -> np.ndarray:
    """step · index + base, rounded once where the numbers are real and finite, as PyTorch's
    multiply-add does: doubles by the exact sum of a product's two parts (Dekker, A floating-point
    technique for extending the available precision, 1971)."""
    if getattr(step, "dtype", None) == np.float32:
        return (np.float64(step) * index + np.float64(base)).astype(np.float32)
    product = step * index.astype(getattr(step, "dtype", np.float64))
    if product.dtype != np.float64 or not (np.isfinite(base).all() and abs(step) < 1e290):
        return base + product
    high = step * 134217729.0
    high -= high - step                     # the upper half of the digits; indices have few
    error = (high * index - product) + (step - high) * index
    total = base + product
    part = total - base
    return total + (((base - (total - part)) + (product - part)) + error)


__all__ = ["arange", "evenly_spaced", "linspace", "logspace"]
