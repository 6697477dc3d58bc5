"""Random tensors for tests."""
from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau import Tensor

LOWEST, HIGHEST = -9, 9         # the interval from which values are drawn by default


def make_tensor(*shape: Any, dtype: Any, device: Any, low: float | None = None,
                high: float | None = None, requires_grad: bool = False,
                noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: Any = None) -> Tensor:
    """A tensor of uniform random values in [low, high).

    By default they lie in [-9, 9), for integers in [-9, 10), for bool in {False, True}.
    `noncontiguous` leaves gaps between the elements; `exclude_zero` replaces zeros by the smallest
    positive number.

    >>> import flambeau
    >>> make_tensor(2, 3, dtype=flambeau.int64, device="cpu", low=1, high=4).shape
    torch.Size([2, 3])
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    inexact = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not inexact:
        raise ValueError("`requires_grad=True` is not supported for boolean and integral dtypes, "
                         f"but got dtype={dtype}")
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually "
                         f"exclusive, but got noncontiguous={noncontiguous} and "
                         f"memory_format={memory_format}")
    low, high = _interval(low, high, dtype)
    if inexact:
        result = _uniform(shape, dtype, device, low, high)
    else:
        result = flambeau.randint(int(low), int(high), shape, dtype=dtype, device=device)
    if noncontiguous and result.numel() > 1:
        result = flambeau.repeat_interleave(result, 2, dim=-1)[..., ::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        smallest = flambeau.finfo(dtype).tiny if inexact else 1
        result[result == 0] = smallest
    return result.requires_grad_() if requires_grad else result


def _uniform(shape: tuple[int, ...], dtype: Any, device: Any, low: float, high: float) -> Tensor:
    if dtype.is_floating_point and dtype.itemsize == 1:
        return flambeau.empty(shape, dtype=flambeau.float32, device=device).uniform_(
            low, high).to(dtype)
    result = flambeau.empty(shape, dtype=dtype, device=device)
    drawn = flambeau.view_as_real(result) if dtype.is_complex else result
    drawn.uniform_(low, high)
    return result


def _interval(low: Any, high: Any, dtype: Any) -> tuple[Any, Any]:
    """The interval of values, inside the range of the type."""
    info: Any
    least: Any
    beyond: Any
    if dtype is flambeau.bool:
        least, beyond, default = 0, 2, (0, 2)
    elif dtype.is_floating_point or dtype.is_complex:
        info = flambeau.finfo(dtype)
        least, beyond, default = info.min, info.max, (LOWEST, HIGHEST)
    else:
        info = flambeau.iinfo(dtype)
        least, beyond = info.min, info.max + 1
        default = (max(LOWEST, least), min(HIGHEST + 1, beyond))
    low, high = (d if v is None else v for v, d in zip((low, high), default))
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        import warnings
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex "
                      "types is deprecated since 2.1 and will be removed in 2.3. Use "
                      "`torch.full(...)` instead.", FutureWarning, stacklevel=3)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= beyond:
        raise ValueError("The value interval specified by `low` and `high` is "
                         f"[{low}, {high}), but {dtype} only supports [{least}, {beyond})")
    low, high = max(low, least), min(high, beyond)
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = math.ceil(low), math.ceil(high)
    return low, high
