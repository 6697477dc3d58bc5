"""Methods that classes inherit here, and that each of them defines itself in PyTorch.

Python's errors of calls name the class that defines the method. That is to be the class which users
know, not the base that our classes share:

>>> import flambeau
>>> flambeau.nn.CELU(beta=1)
Traceback (most recent call last):
TypeError: CELU.__init__() got an unexpected keyword argument 'beta'
"""
from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

C = TypeVar("C", bound=type)


def copy_method(cls: type, name: str, function: Any) -> None:
    if isinstance(function, classmethod | staticmethod):
        copy_method(cls, name, function.__func__)
        return setattr(cls, name, type(function)(vars(cls)[name]))
    made = FunctionType(function.__code__, function.__globals__, name, function.__defaults__,
                        function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__annotations__ = function.__annotations__
    made.__doc__, made.__module__ = function.__doc__, cls.__module__
    made.__dict__.update(function.__dict__)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, made)


def _code(method: Any) -> Any:
    return getattr(getattr(method, "__func__", method), "__code__", None)


def define_in_subclasses(*names: str, further: bool = False) -> Callable[[C], C]:
    """Decorates a base: the public classes of this library below it get methods of that name, or
    all its public methods, of their own; those `further` down too?"""
    def decorate(base: C) -> C:
        shared: Any = base
        before = vars(base).get("__init_subclass__")
        copied = names or [
            name for name, value in vars(base).items()
            if isinstance(value, FunctionType | classmethod) and (
                name[0] != "_" or name in ("__init__", "__enter__", "__exit__", "__call__"))]

        def initialise(cls: Any, **options: Any) -> None:
            if before is None:
                super(shared, cls).__init_subclass__(**options)
            else:
                before.__func__(cls, **options)
            if cls.__name__.startswith("_") or not cls.__module__.startswith(
                    ("flambeau.", "torch.")):
                return
            for name in copied:
                owner = next(c for c in cls.__mro__ if name in vars(c))
                found, own = vars(owner)[name], vars(base)[name]
                if owner is base or (further and owner is not cls
                                     and _code(found) is _code(own)):
                    copy_method(cls, name, own)

        shared.__init_subclass__ = classmethod(initialise)
        return base
    return decorate


def copy_inherited(*names: str) -> Callable[[C], C]:
    """Decorates a class: what it inherits of that name becomes its own."""
    def decorate(cls: C) -> C:
        for name in names:
            copy_method(cls, name, next(vars(c)[name] for c in cls.__mro__ if name in vars(c)))
        return cls
    return decorate


def define_also(name: str, of: str) -> Callable[[C], C]:
    """Decorates a class: it gets a method `name` that does what its method `of` does."""
    def decorate(cls: C) -> C:
        copy_method(cls, name, vars(cls)[of])
        return cls
    return decorate


def shown_as(name: str) -> Callable[[Any], Any]:
    """Decorates a method, which errors are to cite by that name."""
    def decorate(method: Any) -> Any:
        method.__qualname__ = name
        return method
    return decorate


def of_class(name: str, *parts: type) -> None:
    """Methods of the classes that another is put together of seem to be those of that class."""
    for part in parts:
        for key, value in vars(part).items():
            if isinstance(value, FunctionType):
                value.__qualname__ = f"{name}.{key}"


def belong(module: str, *made: Any) -> None:
    """Classes and functions say that they are of the module where users find them, by which
    pickles, reprs and the code of graphs name them."""
    for one in made:
        one.__module__ = module


def adopt(scope: dict[str, Any], parts: str | tuple[str, ...]) -> None:
    """What a module shows of its own `parts` (modules of the package whose names begin so) belongs
    to it."""
    for name, value in scope.items():
        if isinstance(value, type | FunctionType) and value.__name__ == name \
                and value.__module__.partition(".")[2].startswith(parts):
            value.__module__ = scope["__name__"]


__all__ = ["adopt", "belong", "copy_inherited", "define_in_subclasses", "of_class", "shown_as"]
