"""Subclasses of Tensor with a `__torch_dispatch__`: they take over each op, below autograd.

A *wrapper* has a shape and a type but no values of its own, only the tensors that it wraps.

>>> import flambeau
>>> class Twice(flambeau.Tensor):
...     @staticmethod
...     def __new__(cls, inner):
...         return flambeau.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
...     def __init__(self, inner):
...         self.inner = inner
...     __torch_function__ = flambeau._C._disabled_torch_function_impl
...     @classmethod
...     def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
...         print(func)
...         args = [a.inner * 2 if isinstance(a, cls) else a for a in args]
...         return func(*args, **(kwargs or {}))
>>> Twice(flambeau.ones(2)).add(1)
aten.add.Tensor
tensor([3., 3.])
"""
from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from math import prod
from typing import Any

import numpy as np

import flambeau
from flambeau._support.scopes import inside, within
from flambeau.core import devices
from flambeau.core.calling import overrides
from flambeau.core.dtypes import as_numpy_dtype, default_float
from flambeau.core.modes import interceptors, levels
from flambeau.core.op import Op
from flambeau.core.shapes import contiguous_strides
from flambeau.core.tensor import Tensor, alias, as_leaf, plain_types
from flambeau.dispatch.aten import forms
from flambeau.dispatch.aten.level import DispatchLevel, dispatching_types


def install_torch_dispatch(cls: type, bare: Callable[[Any], Tensor] | None = None) -> None:
    """Hand the ops on instances of `cls` to its `__torch_dispatch__`.

    `bare` gives what ops work on while dispatch is disabled, if it is not the instance.
    """
    if bare is not None:
        _bare_forms[cls] = bare
    plain_types.discard(cls)
    overrides.own_rules[cls] = run
    for name, member in _OWN.items():
        if getattr(cls, name) is getattr(Tensor, name):
            setattr(cls, name, member)


def run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public call with an instance among its arguments."""
    if disabled.get():
        if _bare_forms:
            from flambeau.utils._pytree import tree_map_only
            args, kwargs = tree_map_only(tuple(_bare_forms), _bare_form, (args, kwargs))
        return within(overrides.suspended, run, function, *args, **kwargs)
    return within(public_arguments, (*args, *kwargs.values()), inside, _SubclassLevel(), function,
                  *args, **kwargs)


# Whether ops run on instances as on any tensor, without asking `__torch_dispatch__`.
disabled: ContextVar[bool] = ContextVar("disabled", default=False)
_bare_forms: dict[type, Callable[[Any], Tensor]] = {}


def _bare_form(instance: Tensor) -> Tensor:
    return _bare_forms[type(instance)](instance)


# What the user has given to the call that runs: other tensors in it were made on the way.
public_arguments: ContextVar[tuple[Any, ...] | None] = ContextVar("public_arguments", default=None)


class _SubclassLevel(DispatchLevel):
    """The outermost level of a call with an instance: what reaches it goes to the type."""

    def __init__(self) -> None:
        super().__init__(_call_torch_dispatch)

    def _changes(self) -> Any:
        return ((levels, (self, *levels.get())), (interceptors, self), (overrides.suspended, run))

    def _shown(self, op: Op, args: Any, kwargs: Any, call: Any) -> Any:
        if not _own_tensors((*args, *(kwargs or {}).values())):
            return call(*args, **(kwargs or {}))
        return super()._shown(op, args, kwargs, call)


    def ask(self, overload: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Show one call of an overload, if there is an instance in it."""
        if not _own_tensors((*args, *kwargs.values())):
            return overload.run(*args, **kwargs)
        return super().ask(overload, args, kwargs)


def _own_tensors(values: Any) -> list[Tensor]:
    return [t for t in forms.tensors_in(values) if type(t) in overrides.own_rules
            and overrides.own_rules[type(t)] is run]


def _call_torch_dispatch(overload: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Ask the types of the instances, subclasses first."""
    asked: list[Any] = []
    for cls in types:
        at = next((i for i, other in enumerate(asked) if issubclass(cls, other)), len(asked))
        asked.insert(at, cls)
    own = getattr(overload._run, "dispatch_rules", {})
    for cls in asked:
        if overrides.own_rules.get(cls) is run:
            rule = partial(own[cls], cls) if cls in own else cls.__torch_dispatch__
            found = within(overrides.suspended, None, rule, overload, types, args, kwargs)
            if found is not NotImplemented:
                return found
    raise TypeError(f"Multiple dispatch failed for '{overload.name()}'; all __torch_dispatch__ "
                    "handlers returned NotImplemented:\n\n"
                    + "\n".join([f"  - tensor subclass {cls}" for cls in asked]))


def show(overload: Any, *args: Any, **kwargs: Any) -> Any:
    """Show a call that no op of flambeau makes."""
    return within(levels, (), _call_torch_dispatch, overload, dispatching_types(args, kwargs),
                  args, kwargs)


def make_wrapper(cls: type, size: Any, strides: Any = None, storage_offset: Any = None,
                 memory_format: Any = None, dtype: Any = None, layout: Any = None,
                 device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                 dispatch_sizes_strides_policy: str | None = None, dispatch_device: bool = False,
                 dispatch_layout: bool = False, *_: Any) -> Any:
    """A tensor of type `cls` with a shape, strides, a type and a device, but no values."""
    if not hasattr(cls, "__torch_dispatch__"):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    shape = tuple(size)
    target = default_float() if dtype is None else as_numpy_dtype(dtype)
    steps = contiguous_strides(shape) if strides is None else tuple(strides)
    extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, steps))
    memory = np.zeros(max(extent, prod(shape) and 1), target)    # never touched
    result = alias(np.lib.stride_tricks.as_strided(
        memory, shape, tuple(s * target.itemsize for s in steps)), cls)
    if device is not None and devices.device(device) != devices.cpu:
        result._device = devices.device(device)
    if requires_grad:
        as_leaf(result)
    return result


# ---- what reads values ---------------------------------------------------------------------------


def _item(self: Tensor) -> Any:
    """The only element, as a number; `__torch_dispatch__` is asked for it.

    Raises:
        RuntimeError: there are several elements, or none.
    """
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return show(flambeau.ops.aten._local_scalar_dense.default, self)


def _refuse_member(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f".{name}() is not supported for tensor subclasses.")
    method.__doc__ = "Raises RuntimeError: elements of such a tensor are not an array."
    return method


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if id(self) not in memo:
        memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
    return memo[id(self)]


_OWN: dict[str, Any] = {
    "item": _item, "tolist": _refuse_member("tolist"), "numpy": _refuse_member("numpy"),
    "__bool__": lambda self: bool(_item(self)), "__int__": lambda self: int(_item(self)),
    "__float__": lambda self: float(_item(self)), "__deepcopy__": _deepcopy}
