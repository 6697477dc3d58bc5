"""How a loss sums up its elements: ``"none"``, ``"mean"`` or ``"sum"``, and their old spellings."""

from __future__ import annotations

from flambeau.ops.loss.reduction import name_by_flags, number_of


def get_enum(reduction: str) -> int:
    """The number of a reduction."""
    return number_of(reduction)


def legacy_get_string(size_average, reduce, emit_warning: bool = True) -> str:
    """The reduction that the two old flags mean."""
    return name_by_flags(size_average, reduce, emit_warning)


def legacy_get_enum(size_average, reduce, emit_warning: bool = True) -> int:
    """The number of the reduction that the two old flags mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
