"""Properties and methods of Tensor that are no ops, as `__torch_function__` sees them.

Reading `x.shape` must cost nothing where nobody overrides functions. So the members are replaced by
descriptors that ask only while somebody does: on Tensor while a mode is entered, and on a class
with a `__torch_function__` of its own for good. Seen on a class they are the members themselves:
`Tensor.shape.__get__` is what a mode is shown.
"""
from __future__ import annotations

import threading
from inspect import getattr_static
from types import FunctionType
from typing import Any

from flambeau._support.scopes import locked
from flambeau.core import modes
from flambeau.core.autograd.grad_mode import enable_grad, no_grad
from flambeau.core.calling.overrides import (
    _disabled_torch_function,
    ask_mode_and_types,
    overriding_args,
    subclasses_enabled,
)
from flambeau.core.tensor import Tensor

# Members that Python, not the user, looks at, and those that make and tell classes.
_LEFT = frozenset("""
    __new__ __init__ __init_subclass__ __torch_function__ __getattr__ __hash__ __class__
    __reduce__ __getattribute__ __setattr__ __delattr__ __subclasshook__ __array_priority__
    __array_interface__ __module__ __cuda_array_interface__ __class_getitem__ as_subclass __iter__
""".split())
_PRIVATE = frozenset("_version _base _grad _backward_hooks _is_view".split())   # but asked
_DEFAULT = vars(Tensor)["__torch_function__"].__func__
_lock = threading.Lock()
watchers: list[Any] = []                # modes that are entered
_originals: dict[str, Any] = {}         # the members of Tensor that are replaced


def _is_ours(name: str, member: Any) -> bool:
    if name in _LEFT or (name[0] == "_" and not name.endswith("__") and name not in _PRIVATE):
        return False
    return isinstance(member, property) or getattr(member, "is_member", False) or (
        type(member) is FunctionType and not hasattr(member, "op"))


class _Watched:
    """A member that asks modes and subclasses before it does what it does."""

    def __init__(self, member: Any):
        self.member = member

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.member.__get__(None, owner)
        if not isinstance(self.member, property):
            return _BoundMethod(self.member.__get__(None, owner), instance)
        return _call_watched(self.member.__get__, (instance,), {})


class _WatchedProperty(_Watched):
    """One that may be set."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.member, name)               # `fget`, `fset`

    def __set__(self, instance: Any, value: Any) -> None:
        _call_watched(self.member.__set__, (instance, value), {})

    def __delete__(self, instance: Any) -> None:
        _call_watched(self.member.__delete__, (instance,), {})


class _BoundMethod:
    """A method of an instance."""

    __slots__ = ("__func__", "__self__")

    def __init__(self, function: Any, instance: Any):
        self.__func__, self.__self__ = function, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call_watched(self.__func__, (self.__self__, *args), kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)


def _call_watched(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if modes.function_modes.get() or (subclasses_enabled.get() and overriding_args(args[:1])):
        return ask_mode_and_types(function, args, args, kwargs, not _binds(function, args))
    return function(*args, **kwargs)


def _binds(function: Any, args: tuple[Any, ...]) -> bool:
    """Does a method bind arguments besides its tensor? Properties do not, nor what Python does."""
    if function.__name__ in ("__set__", "backward"):
        return False
    code = getattr(function, "__code__", None)
    return len(args) > 1 or (
        code is not None and code.co_argcount + code.co_kwonlyargcount > 1)


def _watched(member: Any) -> _Watched:
    return _WatchedProperty(member) if isinstance(member, property) else _Watched(member)


def watch_class(cls: Any) -> None:
    """Let `cls`, which overrides functions, be asked about members that it inherits of Tensor."""
    own = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    if own in (_DEFAULT, _disabled_torch_function):
        return
    for base in cls.__mro__[1:]:
        if base is not Tensor and isinstance(base, type) and issubclass(base, Tensor) \
                and "_watches_members" in vars(base):
            return
    for name, member in {**vars(Tensor), **_originals}.items():
        if _is_ours(name, member) and getattr_static(cls, name) is vars(Tensor)[name]:
            setattr(cls, name, _watched(member))
    cls._watches_members = True


def watch() -> None:
    """Watch the members of Tensor: a mode is going to be entered."""
    if not watchers:
        locked(_lock, _watch_members)


def _watch_members() -> None:
    if _originals:              # the last mode was interrupted as it was entered
        return
    for name, member in list(vars(Tensor).items()):
        if _is_ours(name, member) and not isinstance(member, _Watched):
            _originals[name] = member
            setattr(Tensor, name, _watched(member))
    for scope in _SWITCHES:
        _own_changes[scope] = scope._changes
        scope._changes = _ask_to_switch
    no_grad._has_left = _ask_to_switch_back


def restore_members() -> None:
    """A mode has been left: after the last one the members are as they were."""
    if not watchers:
        locked(_lock, _put_back)


def _put_back() -> None:
    if watchers:                # a thread has entered a mode meanwhile
        return
    for name, member in list(_originals.items()):
        if isinstance(vars(Tensor)[name], _Watched):            # else it was renewed meanwhile
            setattr(Tensor, name, member)
        del _originals[name]
    for scope, changes in _own_changes.items():
        scope._changes = changes
    no_grad._has_left = None


# ---- recording -----------------------------------------------------------------------------------

_SWITCHES: tuple[Any, ...] = (no_grad, enable_grad)
_own_changes: dict[Any, Any] = {}


def _ask_to_switch(self: Any) -> Any:
    """What `no_grad` changes while modes look on: they do, being asked."""
    if not modes.function_modes.get():
        return _own_changes[type(self)]
    vars(self).setdefault("_before", []).append(modes.grad_enabled())
    _ask(isinstance(self, enable_grad))
    return ()


def _ask_to_switch_back(self: Any) -> None:
    if before := vars(self).get("_before"):
        _ask(before.pop())


def _ask(enabled: bool) -> None:
    import flambeau
    switch = flambeau._C._set_grad_enabled
    if modes.function_modes.get():
        ask_mode_and_types(switch, (), (enabled,), {}, False)
    else:
        switch(enabled)
