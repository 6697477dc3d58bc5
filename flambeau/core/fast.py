"""The common case of a call in C, where the native extension is there.

`csrc/calling` does what the closures of `core/op.py` do for plain tensors of one dtype, and hands
every other call to the closure, which stays the definition (`function.__wrapped__`) and what a
debugger steps through. Whether a call is C's is known before it has any effect, so that nothing
happens twice. C reads the slots of tensors and nodes at the offsets that their classes give, and is
told here, once, which objects of Python it is to know. The environment variable
``FLAMBEAU_FAST=0`` leaves C out: only slower.
"""
from __future__ import annotations

from functools import update_wrapper
from typing import Any

from flambeau._call_guards import guarded
from flambeau._support.source_locations import PACKAGE, native
from flambeau.core import devices, late_bound
from flambeau.core.dtypes import FLOATING, _Defaults
from flambeau.core.graph import Node, Output, next_order, packers, unpack_result
from flambeau.core.modes import grad_mode, inference, interceptors
from flambeau.core.tensor import (
    LEAF,
    LOOKUP,
    Tensor,
    Untracked,
    View,
    gradient_edge,
    plain,
)
from flambeau.kernels.refused import native_dtypes

read_numbers = native.read_numbers if native is not None else lambda data, dtype: None


def bind(**objects: Any) -> None:
    """Tell C what it is to know of `core/`."""
    if native is not None:
        native.fast_bind({
            "Tensor": Tensor, "View": View, "Node": Node, "Untracked": Untracked, "plain": plain,
            "floating": FLOATING,
            "interceptors": interceptors, "packers": packers, "LEAF": LEAF, "LOOKUP": LOOKUP,
            "grad_mode": grad_mode, "order": next_order.__self__,
            "gradient_edge": gradient_edge, "unpack_result": unpack_result,
            "defaults": _Defaults, "device": devices._default, "basis": late_bound,
            "cpu": devices.cpu, "Output": Output, "package": PACKAGE, "inference": inference,
            **objects})


def _differentiable_results(op: Any) -> int:
    """A bit for each of several results that has a gradient."""
    which = op.differentiable
    every = which is True or not which
    return 2**64 - 1 if every else sum(1 << i for i, has in enumerate(which) if has)


def _of_pointwise(op: Any, kind: str) -> tuple[Any, ...]:
    if kind != "elementwise":
        return ()
    apart = sum(1 << op.tensors.index(name) for name in op.apart)
    checked = 2 * (op.check is not None) + (op.check_bools is not None)
    return (op.floating, op.wide, checked, apart, op.raw, op.fixed, op.usual, op.defaults)


def callable_of(kind: str, op: Any, closure: Any, kernel: Any = None, arguments: Any = None) -> Any:
    """`closure`, or the C callable of this kind that stands in front of it."""
    declared, inner = op.functional or op, kind in ("canonical", "elementwise", "apply")
    plainly = kind not in ("canonical", "elementwise") and (declared.returns is not None
                                       or declared.differentiable is not True)
    if native is None or (plainly and inner):
        return closure if inner else guarded(closure, op)
    users = getattr(declared, "users", ())
    plan = tuple([(what, where or 0, -1 % 2**64 if who is None else sum(1 << i for i in who))
                  for (what, where), who in zip(getattr(declared, "plan", ()), users)])
    dtypes = native_dtypes(declared)
    found = native.fast_make(
        "closure" if plainly else kind, closure, kernel, arguments, op,
        getattr(declared, "Backward", Node), -1 if declared.variadic else len(declared.tensors),
        plan, dtypes, declared.is_differentiable, bool(declared.view) and len(op.tensors) == 1,
        declared.view == "replay", bool(getattr(declared, "numbers", "")), declared.returns,
        _differentiable_results(declared), *_of_pointwise(declared, kind))
    return update_wrapper(found, closure)
