"""`TorchDispatchMode`: sees every op that runs, below the composites and below autograd.

>>> import flambeau
>>> class Log(TorchDispatchMode):
...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
...         print(func)
...         return func(*args, **(kwargs or {}))
>>> with Log():
...     y = flambeau.ones(2).exp() + 1
aten.ones.default
aten.exp.default
aten.add.Tensor
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flambeau._ops import OpOverload, OpOverloadPacket, aten
from flambeau._support.scopes import Scope
from flambeau.core import modes
from flambeau.core.tensor import Tensor
from flambeau.dispatch.aten.level import DispatchLevel, dispatching_types


class TorchDispatchMode(Scope):
    """While entered, each op that runs is handed to `__torch_dispatch__(func, types, args, kwargs)`
    instead; inside it the mode is set aside, and nothing is recorded. Modes nest, the innermost
    comes first."""

    def __init__(self, _dispatch_key: Any = None):
        if _dispatch_key is not None and type(_dispatch_key).__name__ != "DispatchKey":
            raise AssertionError("_dispatch_key must be a torch._C.DispatchKey")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def _changes(self) -> Any:
        return _ModeLevel(self)._changes()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """Deprecated: make the mode, to be entered."""
        return cls(*args, **kwargs)


class _ModeLevel(DispatchLevel):
    """Hands each op to a mode's `__torch_dispatch__`."""

    def __init__(self, mode: TorchDispatchMode):
        super().__init__(mode.__torch_dispatch__)
        self.mode = mode

    def ask(self, overload: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Show one call; what is registered for the mode's class comes first."""
        for cls in type(self.mode).__mro__:
            if cls in overload.python_key_table:
                return overload.python_key_table[cls](self.mode, *args, **kwargs)
        rules = getattr(overload._run, "dispatch_rules", None)
        rule = rules and next((rules[c] for c in type(self.mode).__mro__ if c in rules), None)
        if rule:
            return rule(self.mode, overload, dispatching_types(args, kwargs), tuple(args), kwargs)
        return super().ask(overload, args, kwargs)


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode of this thread."""
    stack = _get_current_dispatch_mode_stack()
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return [lv.mode for lv in modes.levels.get() if isinstance(lv, _ModeLevel)]


def _get_dispatch_stack_at(level: int) -> TorchDispatchMode:
    """One of the modes of this thread, counted from the outermost."""
    return _get_current_dispatch_mode_stack()[level]


def _len_torch_dispatch_stack() -> int:
    """The number of modes of this thread."""
    return len(_get_current_dispatch_mode_stack())


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Is a mode of this thread entered?"""
    return bool(_get_current_dispatch_mode_stack())


def any_torch_dispatch_mode_on_stack() -> bool:
    """Does any mode run?"""
    return is_in_torch_dispatch_mode()


def _push_mode(mode: TorchDispatchMode) -> None:
    """Enter a mode."""
    mode.__enter__()


def _pop_mode(k: Any = None) -> TorchDispatchMode:
    """Leave the innermost mode."""
    mode = _get_current_dispatch_mode()
    if mode is None:
        raise AssertionError("Trying to pop empty torch_dispatch stack")
    mode.__exit__(None, None, None)
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    """Inside, the innermost mode is left."""
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class modes_set_aside(Scope):
    """Inside, dispatch modes of a kind are not active; gives the innermost that was."""

    kind: type = TorchDispatchMode

    def _found(self) -> list[Any]:
        return [lv for lv in modes.levels.get() if isinstance(lv, _ModeLevel)
                and isinstance(lv.mode, self.kind)]

    @property
    def _gives(self) -> Any:
        found = self._found()
        return found[-1].mode if found else None

    def _changes(self) -> Any:
        found = self._found()
        return (modes.levels, tuple([lv for lv in modes.levels.get() if lv not in found])),


class levels_set_aside(Scope):
    """Inside, ops run at once: no mode or transform sees them."""

    _changes = ((modes.levels, ()),)
    _gives = None


class _disable_current_modes(Scope):
    """Inside, no dispatch mode is active."""

    @property
    def _gives(self) -> list[TorchDispatchMode]:
        return _get_current_dispatch_mode_stack()

    def _changes(self) -> Any:
        return (modes.levels, tuple([lv for lv in modes.levels.get()
                                     if not isinstance(lv, _ModeLevel)])),


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Is this a class of tensors that wrap others in the way that tracers can take apart?"""
    return issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__") \
        and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Does a tensor wrap others in the way that tracers can take apart?"""
    return isinstance(t, Tensor) and hasattr(type(t), "__tensor_flatten__") \
        and hasattr(type(t), "__tensor_unflatten__")


def transform_subclass(t: Any, callback: Any, outer_size: Any = None,
                       outer_stride: Any = None) -> Any:
    """A wrapper like `t` around `callback(name, inner)` of each tensor that it wraps."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(inner, context, outer_size or t.size(),
                                        outer_stride or t.stride())


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a `__torch_dispatch__` that has computed `out` returns: for results that an op has
    written to, the arguments that they are."""
    schema = func._schema
    given = dict(zip([a.name for a in schema.arguments], schema.bound(args, kwargs or {})))
    written = {next(iter(a.alias_info.before_set)): given[a.name] for a in schema.arguments
               if a.alias_info is not None and a.alias_info.is_write}
    if not written:
        return out

    def of(result: Any, found: Any) -> Any:
        info = result.alias_info
        return found if info is None else written.get(next(iter(info.before_set)), found)
    returns = schema.returns
    if len(returns) == 1:
        return of(returns[0], out)
    return type(out)([of(r, o) for r, o in zip(returns, out)]) if returns else out


__all__ = ["OpOverload", "OpOverloadPacket", "TorchDispatchMode", "aten",
           "is_traceable_wrapper_subclass",
           "return_and_correct_aliasing", "transform_subclass"]
