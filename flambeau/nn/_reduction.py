"""How a loss sums up its elements: ``"none"``, ``"mean"`` or ``"sum"``, and their old spellings."""

from __future__ import annotations

import warnings


def get_enum(reduction: str) -> int:
    """The number of a reduction."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=2)
        return 1
    try:
        return {"none": 0, "mean": 1, "sum": 2}[reduction]
    except (KeyError, TypeError):
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


def legacy_get_string(size_average, reduce, emit_warning: bool = True) -> str:
    """The reduction that the two old flags mean."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = ("mean" if size_average else "sum") if reduce else "none"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, "
            f"please use reduction='{reduction}' instead.", stacklevel=3)
    return reduction


def legacy_get_enum(size_average, reduce, emit_warning: bool = True) -> int:
    """The number of the reduction that the two old flags mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
