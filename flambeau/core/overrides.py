"""`__torch_function__`: types and modes that take over whole public functions."""
from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from flambeau.core import modes, tensor
from flambeau.core.tensor import Tensor, plain, tensor_types

_subclasses_enabled: ContextVar[bool] = ContextVar("torch_function_subclasses", default=True)
_PLAIN_TYPES = frozenset({int, float, bool, complex, str, type(None), slice, type(Ellipsis)})


def overriding(args: Any, kwargs: dict[str, Any] | None = None, depth: int = 0) -> list[Any]:
    """The arguments whose types override functions, one a type, subclasses first."""
    if not _subclasses_enabled.get():
        return []
    found: list[Any] = []
    for arg in (*args, *(kwargs.values() if kwargs else ())):
        cls = type(arg)
        if cls in plain or cls in _PLAIN_TYPES:
            continue
        if cls in (list, tuple):
            if depth < 1:
                for inner in overriding(arg, None, depth + 1):
                    _insert(found, inner)
        elif overrides(cls):
            _insert(found, arg)
    return found


def overrides(cls: type) -> bool:
    """Does this type have a `__torch_function__` that wants to be asked?"""
    function = getattr(cls, "__torch_function__", None)
    if function is None or cls in plain:
        return False
    function = getattr(function, "__func__", function)
    if function is tensor._disabled_torch_function:
        return False
    return cls not in internal_types


internal_types: set[type] = set()       # flambeau's own subclasses: wrappers and meta tensors


def _insert(found: list[Any], arg: Any) -> None:
    cls = type(arg)
    if any(type(f) is cls for f in found):
        return
    for i, other in enumerate(found):
        if issubclass(cls, type(other)):
            found.insert(i, arg)
            return
    found.append(arg)


def wanted(args: Any, kwargs: dict[str, Any] | None = None) -> bool:
    """Does any argument override functions?"""
    for arg in (*args, *kwargs.values()) if kwargs else args:
        cls = type(arg)
        if cls in plain or cls in _PLAIN_TYPES:
            continue
        if cls is tuple or cls is list:
            for inner in arg:
                if type(inner) not in plain and type(inner) not in _PLAIN_TYPES:
                    return bool(overriding(args, kwargs))
        elif hasattr(cls, "__torch_function__"):
            return bool(overriding(args, kwargs))
    return False


def has_torch_function(relevant: Any) -> bool:
    """Does any of these arguments (or a mode) override functions?"""
    return bool(modes.function_modes.get()) or wanted(relevant)


def public_name(op: Any) -> Any:
    """The callable under which `__torch_function__` knows an op."""
    return op.function if op.function is not None else op


def call(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ask the overriding arguments of a call, in turn."""
    return ask(public_name(op), overriding(args, kwargs), args, kwargs)


def ask(function: Any, relevant: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    types = tuple([type(r) for r in relevant])
    for arg in relevant:
        answer = type(arg).__torch_function__(function, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    name = getattr(function, "__name__", function)
    raise TypeError(f"no implementation found for '{getattr(function, '__module__', 'torch')}."
                    f"{name}' on types that implement __torch_function__: "
                    f"{[t for t in types]}")


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Ask the overriding `relevant_args` of a call `public_api(*args, **kwargs)`, in turn."""
    modes_active = modes.function_modes.get()
    if modes_active:
        token = modes.function_modes.set(modes_active[:-1])
        try:
            types = tuple([type(r) for r in overriding(relevant_args)])
            answer = modes_active[-1].__torch_function__(public_api, types, args, kwargs)
            if answer is not NotImplemented:
                return answer
        finally:
            modes.function_modes.reset(token)
    return ask(public_api, overriding(relevant_args), args, kwargs)


def call_mode(mode: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ask a `TorchFunctionMode`, with it set aside."""
    types = tuple([type(r) for r in overriding(args, kwargs)])
    answer = mode.__torch_function__(public_name(op), types, args, kwargs)
    if answer is NotImplemented:
        raise TypeError(f"mode {mode!r} returned NotImplemented for {op.name}")
    return answer


class DisableTorchFunctionSubclass:
    """Inside, subclasses of Tensor do not override functions."""

    def __enter__(self) -> None:
        self._token = _subclasses_enabled.set(False)

    def __exit__(self, *exception: Any) -> None:
        _subclasses_enabled.reset(self._token)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, neither subclasses nor modes override functions."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes = modes.function_modes.set(())

    def __exit__(self, *exception: Any) -> None:
        modes.function_modes.reset(self._modes)
        super().__exit__(*exception)


def default_torch_function(cls: type, function: Any, types: Any, args: tuple[Any, ...],
                           kwargs: dict[str, Any]) -> Any:
    """What a subclass does that does not say otherwise: run it, give results the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = function(*args, **kwargs)
    if function in _KEEPS_TYPE:
        return result
    return as_subclass(result, cls)


_KEEPS_TYPE: set[Any] = set()


def as_subclass(result: Any, cls: type) -> Any:
    """Tensors in `result`, also inside tuples and lists, as instances of `cls`."""
    if type(result) in tensor_types:
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[as_subclass(r, cls) for r in result])
    if type(result) in (tuple, list):
        return type(result)([as_subclass(r, cls) for r in result])
    return result


class TorchFunctionMode:
    """While entered, takes over every public function: `__torch_function__(func, types, args,
    kwargs)` on the instance. Modes nest; inside its own method a mode is set aside."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        modes.interceptors.append(self)
        modes.function_modes.set((*modes.function_modes.get(), self))
        return self

    def __exit__(self, *exception: Any) -> None:
        modes.function_modes.set(modes.function_modes.get()[:-1])
        modes.interceptors.remove(self)


def is_tensor_like(value: Any) -> bool:
    """Is this a Tensor, or of a type that overrides functions?"""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")
