"""Lists of plain tensors that are written to in one kernel call, in place of a loop of ops."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from flambeau._support.source_locations import mark_written
from flambeau.core.modes import grad_enabled, inference, intercepts_ops
from flambeau.core.tensor import Tensor, arrays_of, plain_types
from flambeau.kernels.network import optimizers as kernels

Tensors = Sequence[Tensor]
Numbers = Sequence[tuple[float, ...]]
_requires_grad, _is_inference = attrgetter("requires_grad"), attrgetter("_inference")


def are_plain(tensors: Tensors, others: Tensors = ()) -> bool:
    """May a kernel write to the tensors, and read the others, without asking anybody?"""
    both = [*tensors, *others]
    if not tensors or intercepts_ops() or not plain_types.issuperset(map(type, both)):
        return False
    if grad_enabled() and any(map(_requires_grad, both)):
        return False
    return inference.get() or not any(map(_is_inference, tensors))


def update_list(rule: str, tensors: Tensors, others: Tensors | None = None,
                numbers: Numbers = ((),)) -> bool:
    """Apply a rule of `kernels.optimizers.update_arrays` to each tensor, in place.

    Args:
        rule: its name.
        tensors: what is written to.
        others: the second operand for each tensor, if the rule has one.
        numbers: the rule's numbers for each tensor, or one tuple for all.

    Returns:
        Whether it did; else the caller does it by ops.
    """
    if not are_plain(tensors, () if others is None else others):
        return False
    arrays = arrays_of(tensors)
    operands = arrays if others is None else arrays_of(others)
    if not kernels.update_arrays(rule, arrays, operands, numbers=numbers):
        return False
    mark_written(tensors)
    return True


def clear_grads(params: Iterable[Tensor], set_to_none: bool) -> None:
    """Drop the gradients of parameters, or fill them with zeros."""
    if set_to_none is True:             # what is no bool is asked where there is a gradient
        for p in params:
            p.grad = None
        return
    with_grads = [p for p in params if p.grad is not None]
    if with_grads and set_to_none:
        return clear_grads(with_grads, True)
    grads = [p.grad for p in with_grads]
    for grad in grads:
        if grad.grad_fn is not None:
            grad.detach_()
        else:
            grad.requires_grad_(False)
    if grads and not update_list("fill", grads, numbers=[(0.0,)]):
        for grad in grads:
            grad.zero_()


def all_finite(tensors: Tensors) -> bool | None:
    """Is every element finite? None where a kernel cannot look."""
    return kernels.all_finite(arrays_of(tensors)) if are_plain(tensors) else None


# ---- rules of the functions `_foreach_*_` --------------------------------------------------------
#
# Each takes the operands, a list with one for each tensor, and gives what `update_list` takes, or
# something false.


def _numbers(values: list[Any]) -> list[float] | None:
    """Numbers, if all are real ones; tensors of one element are read."""
    first = values[0]
    if isinstance(first, Tensor) and all(value is first for value in values):
        return [first.item()] * len(values) if first.dtype.is_floating_point else None
    return values if all(type(value) in (int, float) for value in values) else None


def fill_zero() -> Any:
    return "fill", None, [(0.0,)]


def copy(others: list[Tensor]) -> Any:
    return "copy", others, [()]


def scale(values: list[Any]) -> Any:
    found = _numbers(values)
    return found and ("scale", None, [(value,) for value in found])


def add(values: list[Any], alpha: list[float] | None = None) -> Any:
    rows = [(1,)] if alpha is None else [(a,) for a in alpha]
    return isinstance(values[0], Tensor) and values[0].ndim and ("add", values, rows)


def lerp(others: list[Tensor], weights: list[Any]) -> Any:
    found = _numbers(weights)
    return found and ("lerp", others, [(w, 1 - w) for w in found])


def bound_below(values: list[Any]) -> Any:
    return _clamp([(value, math.inf) for value in _numbers(values) or ()])


def bound_above(values: list[Any]) -> Any:
    return _clamp([(-math.inf, value) for value in _numbers(values) or ()])


def _clamp(rows: Numbers) -> Any:
    return rows and not any(map(math.isnan, chain(*rows))) and ("clamp", None, rows)


def take(rule: Callable[..., Any], tensors: list[Tensor], operands: list[Any],
         named: dict[str, Any]) -> bool:
    """Update the tensors by a rule in one call, if that can be done."""
    if intercepts_ops():                # of whom numbers in tensors are hidden
        return False
    found = rule(*operands, **named)
    return bool(found) and update_list(found[0], tensors, *found[1:])
