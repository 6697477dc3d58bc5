"""The common case of a call in C, where the native extension is there.

`csrc/calling` does what the closures of `core/calling/call.py` do for plain tensors of one dtype,
and hands every other call to the closure, which stays the definition (`function.__wrapped__`) and
what a debugger steps through. Whether a call is C's is known before it has any effect, so that
nothing happens twice. C reads the slots of tensors and nodes at the offsets that their classes
give, and is told here, once, which objects of Python it is to know. The environment variable
``FLAMBEAU_FAST=0`` leaves C out: only slower.
"""
from __future__ import annotations

from functools import update_wrapper
from typing import Any

from flambeau._support.source_locations import PACKAGE, native
from flambeau.core import devices, late_bound
from flambeau.core.autograd.graph import Node, Output, next_order, saved_tensor_hooks, unpack_result
from flambeau.core.dtypes import FLOATING, _Defaults
from flambeau.core.modes import deriving, grad_mode, inference, interceptors
from flambeau.core.tensor import LAZY, LEAF, Tensor, Untracked, View, gradient_edge, plain_types
from flambeau.core.views import CopySlices
from flambeau.kernels.refused import native_dtypes

read_numbers = native.read_numbers if native is not None else lambda data, dtype: None


def bind(**objects: Any) -> None:
    """Tell C what it is to know of `core/`."""
    if native is not None:
        native.fast_bind({
            "Tensor": Tensor, "View": View, "Node": Node, "Untracked": Untracked,
            "plain": plain_types, "floating": FLOATING, "CopySlices": CopySlices, "LEAF": LEAF,
            "interceptors": interceptors, "LAZY": LAZY, "saved_tensor_hooks": saved_tensor_hooks,
            "grad_mode": grad_mode, "order": next_order.__self__,
            "gradient_edge": gradient_edge, "unpack_result": unpack_result,
            "defaults": _Defaults, "device": devices._default, "late_bound": late_bound,
            "cpu": devices.cpu, "Output": Output, "package": PACKAGE, "inference": inference,
            "deriving": deriving, **objects})


def _differentiable_results(op: Any) -> int:
    """A bit for each of several results that has a gradient."""
    which = op.differentiable
    every = which is True or not which
    return 2**64 - 1 if every else sum(1 << i for i, has in enumerate(which) if has)


def _of_pointwise(op: Any, kind: str) -> tuple[Any, ...]:
    if kind != "elementwise":
        return ()
    apart = sum(1 << op.tensors.index(name) for name in op.conditions)
    checked = sum([bit for bit, check in ((1, op.check_bools), (2, op.check), (4, op.check_complex))
                   if check is not None])
    return (op.floating, op.wide, checked, apart, op.raw, op.fixed, op.default_kernel, op.defaults)


def make_callable(kind: str, op: Any, closure: Any, kernel: Any) -> Any:
    """`closure`, or the C callable of this kind that stands in front of it: "canonical" and
    "elementwise" call a kernel, "apply" runs the rules of a node."""
    if native is None or (kind == "apply" and (op.returns is not None
                                               or op.differentiable is not True)):
        return closure
    plan = tuple([(what, where or 0, -1 % 2**64 if who is None else sum(1 << i for i in who))
                  for (what, where), who in zip(op.plan, op.users)])
    found = native.fast_make(
        kind, closure, kernel, op, getattr(op, "Backward", Node),
        -1 if op.variadic else len(op.tensors), plan, native_dtypes(op), op.is_differentiable,
        bool(op.view) and len(op.tensors) == 1, op.view == "replay", op.returns,
        _differentiable_results(op), *_of_pointwise(op, kind))
    return update_wrapper(found, closure)


def inplace_callable(op: Any, closure: Any) -> Any:
    """`closure`, the in-place form of an op, or the C callable that stands in front of it."""
    own = op.functional.call
    if native is None or type(own) is not native.Callable:
        return closure
    found = native.fast_make("inplace", closure, own, op, Node, len(op.tensors), (), 0, False,
                             False, False, None)
    return update_wrapper(found, closure)
