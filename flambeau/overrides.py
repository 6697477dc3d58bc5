"""Overriding functions by type (`__torch_function__`) and by mode.

A class with a `__torch_function__` classmethod takes over every public function that is called with
one of its instances; a `TorchFunctionMode` takes over all while it is entered.

>>> import flambeau
>>> class Log(TorchFunctionMode):
...     def __torch_function__(self, func, types, args=(), kwargs=None):
...         print(func.__name__)
...         return func(*args, **(kwargs or {}))
>>> with Log():
...     y = flambeau.exp(flambeau.zeros(1))
zeros
exp
"""
from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flambeau._ops import OpOverload, OpOverloadPacket
from flambeau._support.c_functions import takes_one, takes_positions
from flambeau._support.own_methods import adopt
from flambeau._support.scopes import within
from flambeau.core.calling.overrides import (
    handle_torch_function,
    overriding_args,
    subclasses_enabled,
)
from flambeau.core.calling.overrides import has_torch_function as overrides_any
from flambeau.core.modes import function_modes
from flambeau.core.tensor import Tensor
from flambeau.core.type_info import strided
from flambeau.transforms.function_modes import TorchFunctionMode, is_tensor_like


def _get_overloaded_args(relevant_args: Any, get_type_fn: Any = None) -> list[Any]:
    """The arguments whose types override functions, one a type, subclasses first."""
    return overriding_args(relevant_args)


def _overridden(relevant: Any) -> bool:
    """Does any of these arguments (or a mode) override functions?"""
    return overrides_any([v for v in relevant if not _is_built_in(v)]
                         if isinstance(relevant, Iterable) else relevant)


def _is_built_in(value: Any) -> bool:
    """Nested tensors of layout strided override functions only here."""
    return isinstance(value, Tensor) and type(value).is_nested is not Tensor.is_nested \
        and value.layout is strided         # an instance would ask its class


def _has_torch_function_unary(tensor: Any) -> bool:
    """`has_torch_function` for one argument."""
    return _overridden((tensor,))


def _has_torch_function_variadic(*relevant: Any) -> bool:
    """`has_torch_function` for arguments that are given one by one."""
    return _overridden(relevant)


has_torch_function = takes_one(_overridden, name="_has_torch_function", home="torch._C")
has_torch_function_unary = takes_one(_has_torch_function_unary, home="torch._C")
has_torch_function_variadic = takes_positions(_has_torch_function_variadic, home="torch._C")


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function, so that it can be overridden like a public one; `dispatcher` is called
    with its arguments and gives those that may override."""
    def inner(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if overrides_any(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)
        return wrapped
    return inner


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Is this a method of Tensor, or the getter or setter of a property?"""
    return func in _of_tensor() or func.__name__ in ("__get__", "__set__")


# Where functions are looked for; a later place gives a function that several have its name.
_PLACES = ("", "functional", "nn.functional", "nn.init", "Tensor", "linalg", "fft", "special")


def _place(path: str) -> Any:
    import flambeau
    return functools.reduce(getattr, filter(None, path.split(".")), flambeau)


@functools.cache
def _named() -> tuple[dict[Any, list[Callable[..., Any]]], dict[Any, str]]:
    """The functions that can be overridden by the place that has them, and the name of each."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    names: dict[Any, str] = {}
    ignored = get_ignored_functions()
    for path in _PLACES:
        place = _place(path)
        listed = found.setdefault(place, [])
        of_place: dict[Any, str] = {}
        for name in _public_names(place):
            if isinstance(inspect.getattr_static(place, name, None), (staticmethod, classmethod)):
                continue
            member = getattr(place, name, None)
            for function in _functions(member, place is Tensor):
                if function in ignored:
                    continue
                listed.append(function)
                end = ".__get__" if function is not member else ""
                if place is Tensor or function not in of_place \
                        or name == getattr(function, "__name__", None):
                    of_place[function] = ".".join(filter(None, ("torch", path, name))) + end
        if path in ("linalg", "fft", "special"):        # other names of what has one
            of_place = {f: n for f, n in of_place.items() if f not in names}
        names |= of_place
    return found, names


def _public_names(place: Any) -> list[str]:
    if place is Tensor:
        return [n for n in dir(Tensor) if n not in _NOT_OVERRIDDEN]
    return [n for n in dir(place) if not n.startswith("_") and not n[0].isupper()]


def _functions(member: Any, of_tensor: bool) -> list[Callable[..., Any]]:
    if isinstance(member, property):
        return [member.__get__]
    if isinstance(member, type) or not callable(member) or isinstance(member, classmethod):
        return []
    if not of_tensor and not hasattr(member, "op") and not getattr(
            member, "__module__", "").startswith(("flambeau.nn.", "flambeau.functional", "torch")):
        return []
    try:
        hash(member)
    except TypeError:
        return []
    return [member]


_NOT_OVERRIDDEN = frozenset("""
    __class__ __delattr__ __dir__ __doc__ __getattribute__ __init__ __init_subclass__ __module__
    __new__ __reduce__ __setattr__ __sizeof__ __slots__ __subclasshook__ __weakref__ __dict__
    __torch_function__ __getattr__ __hash__ __getstate__ __array_priority__ __eq__ __ne__
    __class_getitem__ __cuda_array_interface__ __array_interface__ __annotations__
""".split()) - {"__eq__", "__ne__"}


@functools.cache
def _of_tensor() -> frozenset[Any]:
    return frozenset(_named()[0][Tensor])


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """All functions that can be overridden, by the namespace that holds them: modules, and Tensor
    with its methods and the getters of its properties.

    >>> import flambeau
    >>> flambeau.stack in get_overridable_functions()[flambeau]
    True
    """
    return {place: list(functions) for place, functions in _named()[0].items()}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden, one with the same parameters that gives -1."""
    return {function: _dummy(function) for functions in _named()[0].values()
            for function in functions}


def _dummy(function: Callable[..., Any]) -> Callable[..., Any]:
    def dummy(*args: Any, **kwargs: Any) -> Any:
        return -1
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return dummy
    dummy.__signature__ = signature                         # type: ignore[attr-defined]
    return dummy


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """The public functions that no type overrides: they take no tensors."""
    import flambeau
    names = ("typename", "is_tensor", "is_storage", "set_default_dtype", "get_default_dtype",
             "manual_seed", "initial_seed", "seed", "save", "load", "set_printoptions",
             "get_rng_state", "set_rng_state", "is_grad_enabled", "no_grad", "enable_grad")
    return {getattr(flambeau, n) for n in names if hasattr(flambeau, n)}


def resolve_name(f: Any) -> str | None:
    """The name of a function, or of the getter of a property, that can be overridden; else None.

    >>> import flambeau
    >>> resolve_name(flambeau.stack), resolve_name(flambeau.Tensor.shape.__get__)
    ('torch.stack', 'torch.Tensor.shape.__get__')
    """
    if isinstance(f, (OpOverload, OpOverloadPacket)):
        return str(f)
    if getattr(f, "__name__", None) == "__set__":
        f, end = getattr(f.__self__, "__get__", f), "__set__"
    else:
        end = "__get__"
    try:
        name = _named()[1].get(f)
    except TypeError:
        return None
    return name and name.replace("__get__", end)


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The getters of Tensor whose results a subclass does not become."""
    return {Tensor._base.__get__, Tensor.grad.__get__}      # type: ignore[attr-defined]


# ---- the stack of modes -----------------------------------


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The modes that are entered, outermost first."""
    return list(function_modes.get())


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode."""
    return (function_modes.get() or (None,))[-1]


def _len_torch_function_stack() -> int:
    """The number of modes that are entered."""
    return len(function_modes.get())


def _get_function_stack_at(level: int) -> TorchFunctionMode:
    """One of the modes that are entered, counted from the outermost."""
    return function_modes.get()[level]


def _is_torch_function_mode_enabled() -> bool:
    """Is a mode entered?"""
    return bool(function_modes.get())


def _push_mode(mode: TorchFunctionMode) -> None:
    """Enter a mode."""
    mode.__enter__()


def _pop_mode() -> TorchFunctionMode:
    """Leave the innermost mode."""
    if not function_modes.get():
        raise RuntimeError("No TorchFunctionMode is active, so that there is none to leave")
    mode = function_modes.get()[-1]
    mode.__exit__(None, None, None)
    return mode


_push_on_torch_function_stack, _pop_torch_function_stack = _push_mode, _pop_mode


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """Inside, the innermost mode is left."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _enable_torch_function() -> Iterator[None]:
    """Inside, subclasses override functions again."""
    token = subclasses_enabled.set(True)
    try:
        yield
    finally:
        subclasses_enabled.reset(token)


_has_torch_function, _has_torch_function_unary, _has_torch_function_variadic = (
    has_torch_function, has_torch_function_unary, has_torch_function_variadic)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class _NotNow:
    """False once, when a function asks whether its arguments override it."""

    def __bool__(self) -> bool:
        subclasses_enabled.set(True)
        return False


class _ModesNotNow(tuple):
    """Modes that are not seen once, when a function asks whether there are any."""

    def __bool__(self) -> bool:
        function_modes.set(tuple(self))
        return False


def redispatch_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """Call a function from within `__torch_function__`, past that: what it calls itself, if it is
    made of other functions, can be overridden as ever.

    >>> import flambeau as torch
    >>> class Log(torch.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args, kwargs=None):
    ...         print(func.__name__)
    ...         return redispatch_function(func, types, args, kwargs)
    >>> def product(a, b):
    ...     if has_torch_function((a, b)):
    ...         return handle_torch_function(product, (a, b), a, b)
    ...     return a * b
    >>> product(Log([2.]), Log([3.]))
    product
    mul
    tensor([6.])
    """
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError("kwargs must be a dictionary")
    return within(subclasses_enabled, _NotNow(), within, function_modes,
                  _ModesNotNow(function_modes.get()), func, *args, **(kwargs or {}))


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Any:
    """A context in which ops called from `__torch_dispatch__` are dispatched again, as they
    always are here, and recorded where the op that is shown would be."""
    from flambeau.autograd.grad_mode import enable_grad
    from flambeau.dispatch.aten.level import recorded_above
    with enable_grad() if recorded_above.get() else contextlib.nullcontext():
        yield


__all__ = ["enable_reentrant_dispatch", "get_ignored_functions", "get_overridable_functions",
           "get_testing_overrides", "handle_torch_function", "has_torch_function", "is_tensor_like",
           "is_tensor_method_or_property", "redispatch_function", "resolve_name",
           "wrap_torch_function"]

adopt(globals(), "transforms.function_modes")
