"""How autocast changes the ops whose declarations say so, as PyTorch documents for the CPU.

A policy is a function `(op, args, kwargs)` that makes the call with other arguments. Autocast is
set aside meanwhile, as the ops that an op is made of are no calls of the user's.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

from flambeau import Tensor
from flambeau.core import dtypes
from flambeau.core.calling.overrides import intercept
from flambeau.core.modes import autocast as active
from flambeau.core.modes import function_modes, grad_enabled
from flambeau.core.tensor import plain_types
from flambeau.ops.view.conversion import cast as convert

Policy = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


@cache
def policies(dtype: dtypes.dtype) -> Callable[[Any], Policy | None]:
    """The function that finds the policy of an op under autocast to `dtype`; None: no change."""
    def lower(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _with_tensors_as(dtype, op, args, kwargs)

    def widest(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _with_tensors_as(_widest(dtype, (*args, *kwargs.values())), op, args, kwargs)

    declared = {"lower": lower, "full": _full, "widest": widest, "untouched": _untouched,
                "opened": _opened}
    known: dict[Any, Policy | None] = {}

    def find(op: Any) -> Policy | None:
        try:
            return known[op]
        except KeyError:
            return known.setdefault(op, declared.get(getattr(op.declaration, "autocast", "")))
    return find


def _full(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _with_tensors_as(dtypes.float32, op, args, kwargs)


def _untouched(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    token = active.set(None)
    try:
        return intercept(op, args, kwargs)
    finally:
        active.reset(token)


def _opened(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of what is made of listed ops these must be seen instead of the one kernel that runs them."""
    if op.binder is not None:
        op, args, _ = op.binder.bind(args, kwargs)
        kwargs = {}
    return (op.parts or op.direct)(*args, **kwargs)


def _with_tensors_as(dtype: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs.get("out") is None:          # calls that say where to write are left alone
        args = tuple([cast(a, dtype) for a in args])
        kwargs = {name: cast(value, dtype) for name, value in kwargs.items()}
    return _untouched(op, args, kwargs)


def eligible(value: Any) -> bool:
    """Floating-point tensors are cast, but for float64."""
    return isinstance(value, Tensor) and value.dtype.is_floating_point \
        and value.dtype is not dtypes.float64


def cast(value: Any, dtype: dtypes.dtype) -> Any:
    """`value` with the tensors in it as `dtype`."""
    if eligible(value):
        return value if value.dtype is dtype else _cast_tensor(value, dtype)
    if type(value) in (list, tuple):
        return type(value)([cast(v, dtype) for v in value])
    return value


def _widest(lower: dtypes.dtype, values: Any) -> dtypes.dtype:
    found = lower
    for value in values:
        if type(value) in (list, tuple):
            found = _widest(found, value)
        elif eligible(value):
            if dtypes.float32 in (found, value.dtype):
                found = dtypes.float32
            elif value.dtype is not found:
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize: "
                                   f"{value.dtype} beside {found}")
    return found


# ---- the cache: one cast a parameter, however often the region uses it --------------------------

cached: dict[int, tuple[Any, Tensor]] = {}      # id → (weak reference, the cast tensor)
cache_wanted: Callable[[], bool] = lambda: True


def _converted(tensor: Tensor, dtype: dtypes.dtype) -> Tensor:
    plain = type(tensor) in plain_types and not function_modes.get()
    return convert(tensor, dtype.numpy) if plain else tensor.to(dtype)


def _cast_tensor(tensor: Tensor, dtype: dtypes.dtype) -> Tensor:
    token = active.set(None)
    try:
        if dtype is dtypes.float32 or not (grad_enabled() and tensor.requires_grad
                                           and tensor.is_leaf and cache_wanted()):
            return _converted(tensor, dtype)
        entry = cached.get(id(tensor))
        if entry is not None and entry[0]() is tensor and entry[1].dtype is dtype:
            return entry[1]
        result = _converted(tensor, dtype)
        cached[id(tensor)] = weakref.ref(tensor), result
        return result
    finally:
        active.reset(token)
