"""Functions that PyTorch has in C: these count and check their arguments in C's words.

>>> import flambeau
>>> flambeau.is_grad_enabled(1)
Traceback (most recent call last):
TypeError: torch.is_grad_enabled() takes no arguments (1 given)
>>> flambeau.get_autocast_dtype(1)
Traceback (most recent call last):
TypeError: get_autocast_dtype(): argument 'device_type' (position 1) must be str, not int
"""
from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import wraps
from types import FunctionType
from typing import Any

# PyTorch's classes that are made in C: those have the module in their names
_MADE_IN_C = {name: f"torch.{name}" for name in
              ("Size", "device", "dtype", "finfo", "iinfo", "layout", "memory_format", "qscheme")} \
    | {"Generator": "torch._C.Generator", "TypedStorage": "torch.storage.TypedStorage",
       "UntypedStorage": "torch.storage.UntypedStorage", "TensorMeta": "torch._C._TensorMeta"}
_INSIDE = ("transforms.", "ops.")


def type_name(value: Any) -> str:
    """The name of a value's type as messages of C have it."""
    cls = type(value)
    inside = cls.__module__.partition(".")[2]
    if hasattr(cls, "__torch_function__") and (inside.startswith(_INSIDE) or (
            inside.startswith("nested.") and str(value.layout) == "torch.strided")):
        return "Tensor"                         # what PyTorch has in tensors of its one class
    if cls.__module__.partition(".")[0] in ("flambeau", "torch"):
        if cls.__name__ in ("Function", "function"):
            written = type(getattr(value, "twin", value)).__name__ == "PythonFunction"
            return "function" if written else "builtin_function_or_method"
        return _MADE_IN_C.get(cls.__name__, cls.__name__)
    made_in_c = not cls.__flags__ & 1 << 9                  # those have the module in their name
    return f"{cls.__module__}.{cls.__name__}" if made_in_c and cls.__module__ != "builtins" \
        else cls.__name__


def _refuse(name: str, takes: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise TypeError(f"{name}() takes no keyword arguments")
    raise TypeError(f"{name}() takes {takes} ({len(args)} given)")


def _set_home(called: Any, home: str) -> Any:
    """`called`, which says that it is of the module `home`."""
    called.__module__ = sys.modules["flambeau"].__name__ + home.removeprefix("torch")
    return called


def takes_nothing(function: Callable[[], Any], *, name: str = "", home: str = "torch") -> Any:
    """That function, which has no arguments, and is called `name` in C."""
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            _refuse(f"{home}.{name or called.__name__}", "no arguments", args, kwargs)
        return function()
    return _set_home(called, home)


def takes_one(function: Callable[[Any], Any], *, name: str = "", home: str = "torch") -> Any:
    """That function, which has one argument, without a name."""
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            _refuse(f"{home}.{name or called.__name__}", "exactly one argument", args, kwargs)
        return function(args[0])
    return _set_home(called, home)


def takes_positions(function: Callable[..., Any], *, name: str = "", home: str = "torch") -> Any:
    """That function, whose arguments have no names."""
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            _refuse(f"{home}.{name or called.__name__}", "", args, kwargs)
        return function(*args)
    return _set_home(called, home)


def counted(method: Callable[..., Any], owner: str = "") -> Any:
    """That method, which has no argument or one, without a name; errors name the class `owner`,
    or else that of the object."""
    count = method.__code__.co_argcount - 1
    takes = "exactly one argument" if count else "no arguments"

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != count:
            _refuse(f"{owner or type(self).__name__}.{called.__name__}", takes, args, kwargs)
        return method(self, *args)
    return called


class ReadOnly(property):
    """A property of C's objects: nobody writes to it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __set__(self, instance: Any, value: Any) -> None:
        raise AttributeError(
            f"attribute '{self.name}' of '{type_name(instance)}' objects is not writable")


class NoArguments:
    """The signature of a class that nobody makes instances of; it imports `inspect` late."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        import inspect
        return inspect.Signature()


def frozen(cls: Any) -> Any:
    """Decorates a class of constants: nobody sets their attributes, but for private ones."""
    def refuse(self: Any, name: str, *value: Any) -> None:
        if name.startswith("_"):
            (object.__setattr__ if value else object.__delattr__)(self, name, *value)
        elif hasattr(type(self), name) or name in getattr(self, "__dict__", ()):
            raise AttributeError(f"attribute '{name}' of 'torch.{type(self).__name__}' objects is "
                                 "not writable")
        else:
            raise AttributeError(f"'torch.{type(self).__name__}' object has no attribute '{name}'")
    cls.__setattr__ = cls.__delattr__ = refuse
    return cls


def _are_strings(value: Any) -> bool:
    """Is this a sequence of strings, as pybind11 takes one?"""
    return hasattr(type(value), "__getitem__") and not isinstance(value, (str, bytes, dict)) \
        and all(isinstance(one, (str, bytes)) for one in value)


def _is_truth(value: Any) -> bool:
    return value is None or hasattr(type(value), "__bool__")


def _is_index(value: Any) -> bool:
    return isinstance(value, int) or (hasattr(type(value), "__index__")
                                      and getattr(value, "shape", ()) == ())


_INT = "typing.SupportsInt | typing.SupportsIndex"
_TYPES: dict[str, Any] = {
    "str": (str, bytes), "bool": _is_truth, "int": int, "dict": dict, "object": object,
    _INT: _is_index, f"{_INT} | None": lambda value: value is None or _is_index(value),
    "collections.abc.Sequence[str]": _are_strings, "collections.abc.Callable": callable,
    "datetime.timedelta": timedelta, "datetime.timedelta | None": (timedelta, type(None))}


def _is_of(wanted: Any, value: Any) -> bool:
    return isinstance(value, wanted) if isinstance(wanted, (type, tuple)) else wanted(value)


def _parameters(signature: str, isinstance_of: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    """The parameters of a signature: name, class or test, and may they be left out?"""
    inside = signature[1:].rpartition(") -> ")[0]
    found = []
    for part in filter(None, re.split(r", (?=\w+: )", inside)):
        name, _, declared = part.partition(": ")
        kind, _, default = declared.partition(" = ")
        found.append((name, isinstance_of.get(kind, _TYPES.get(kind, object)), bool(default)))
    return found


def _fits(parameters: list[tuple[str, Any, bool]], args: tuple[Any, ...],
          kwargs: dict[str, Any]) -> bool:
    """Does such a call fit these parameters?"""
    given = dict(zip([name for name, _, _ in parameters], args))
    if len(args) > len(parameters) or given.keys() & kwargs.keys():
        return False
    given.update(kwargs)
    for name, wanted, optional in parameters:
        if name not in given:
            if not optional:
                return False
        elif not _is_of(wanted, given.pop(name)):
            return False
    return not given


def matched(signatures: str, isinstance_of: dict[str, Any] = _TYPES, *, name: str = "") -> Any:
    """Decorates a function that PyTorch has by pybind11 (as `name`, if that is another), whose
    message lists the `signatures`, one a line; `isinstance_of` says which classes, or tests, its
    types stand for beside those that all know."""
    several = signatures.split("\n")
    parsed = [_parameters(one, isinstance_of) for one in several]

    def decorate(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if not any(_fits(parameters, args, kwargs) for parameters in parsed):
                raise incompatible(name or called.__name__, several, args, kwargs)
            return function(*args, **kwargs)
        return called
    return decorate


def incompatible(name: str, signatures: Iterable[str], args: Iterable[Any],
                 kwargs: dict[str, Any]) -> TypeError:
    """pybind11's refusal of a call that fits none of the signatures."""
    shown = ", ".join([*map(repr, args), *(["kwargs: " + ", ".join(
        f"{key}={value!r}" for key, value in kwargs.items())] if kwargs else [])])
    kind = "constructor" if name == "__init__" else "function"
    listed = "".join([f"\n    {i}. {one}" for i, one in enumerate(signatures, 1)])
    return TypeError(f"{name}(): incompatible {kind} arguments. The following argument types are "
                     f"supported:{listed}\n\nInvoked with: {shown}")


_WRITTEN = {"int": _INT, "int | None": f"{_INT} | None", "str": "str", "bool": "bool",
            "timedelta": "datetime.timedelta", "timedelta | None": "datetime.timedelta | None",
            "list[str]": "collections.abc.Sequence[str]"}


def _type_in_c(annotation: Any) -> str:
    name = annotation.__name__ if isinstance(annotation, type) and not hasattr(
        annotation, "__args__") else str(annotation)
    return _WRITTEN.get(name, "object")


class FieldsInC:
    """A dataclass that PyTorch has by pybind11: its fields refuse what is of another simple type
    than they are written with."""

    def __setattr__(self, name: str, value: Any) -> None:
        cls: Any = type(self)
        kind = _type_in_c(cls.__annotations__.get(name))
        if not _is_of(_TYPES.get(kind, object), value):
            raise incompatible("", [f"(self: torch._C.{cls.__name__}, arg0: {kind}) -> None"],
                               [self, value], {})
        object.__setattr__(self, name, value)


def bound_in_c(cls: Any) -> Any:
    """Decorates a class that PyTorch has by pybind11: its public methods refuse calls in those
    words, by the parameters and the simple types that they are written with."""
    home = f"torch._C.{cls.__name__}"
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and (name[0] != "_" or name == "__init__"):
            code, defaults = method.__code__, method.__defaults__ or ()
            if code.co_flags & 0xC or code.co_kwonlyargcount:       # *args, **kwargs, or by name
                continue
            names = code.co_varnames[1:code.co_argcount]
            written = [f"{one}: {_type_in_c(method.__annotations__.get(one))}"
                       + (" = ..." if at >= len(names) - len(defaults) else "")
                       for at, one in enumerate(names)]
            signature = ", ".join([f"(self: {home}", *written]) + ") -> object"
            setattr(cls, name, matched(signature, {home: cls})(method))
    return cls


__all__ = ["FieldsInC", "NoArguments", "ReadOnly", "bound_in_c", "counted", "frozen",
           "incompatible", "matched", "takes_nothing", "takes_one", "takes_positions",
           "type_name"]
