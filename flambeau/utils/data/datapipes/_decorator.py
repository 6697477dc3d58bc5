"""Decorators of data pipes: registering them as methods, determinism, checks of types."""

import functools
import inspect
from typing import get_args, get_origin, get_type_hints

from flambeau._support.own_methods import define_in_subclasses
from flambeau.utils.data.datapipes._types import DataPipeType
from flambeau.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["argument_validation", "functional_datapipe", "guaranteed_datapipes_determinism",
           "non_deterministic", "runtime_validation", "runtime_validation_disabled"]

_settings = {"determinism": False, "validation": True}


class functional_datapipe:
    """Decorate a class of pipes, so that `source.name(...)` makes one.

    Example::

        >>> from flambeau.utils.data import IterDataPipe, functional_datapipe
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> @functional_datapipe("doubled")
        ... class Doubler(IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         return (2 * n for n in self.source)
        >>> list(IterableWrapper([1, 2]).doubled())
        [2, 4]
    """

    def __init__(self, name, enable_df_api_tracing=False):
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls):
        if isinstance(cls, non_deterministic):
            IterDataPipe.register_datapipe_as_function(self.name, cls)
        elif issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        elif issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        return cls


@define_in_subclasses()
@define_in_subclasses("__init__")
class _Setting:
    """A context in which one of the settings has another value."""

    name: str
    value: bool

    def __init__(self):
        self.before = _settings[self.name]
        _settings[self.name] = self.value

    def __enter__(self):
        pass

    def __exit__(self, exc_type, exc_value, traceback):
        _settings[self.name] = self.before


class guaranteed_datapipes_determinism(_Setting):
    """A context in which pipes that are not deterministic cannot be made."""

    name, value = "determinism", True


class runtime_validation_disabled(_Setting):
    """A context in which `runtime_validation` lets all elements pass."""

    name, value = "validation", False


class non_deterministic:
    """Decorate a class of pipes whose order can vary; or give a function of their arguments that
    says whether it does."""

    def __init__(self, arg):
        self.cls, self.is_so = (arg, None) if isinstance(arg, type) else (None, arg)
        if self.cls is not None and not issubclass(arg, IterDataPipe):
            raise TypeError("Only `IterDataPipe` can be decorated with `non_deterministic`, but "
                            f"{arg.__name__} is found")
        if self.cls is None and not callable(arg):
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args, **kwargs):
        if self.cls is None:
            made = non_deterministic(args[0])
            made.is_so = self.is_so
            return made
        if _settings["determinism"] and (self.is_so is None or self.is_so(*args, **kwargs)):
            raise TypeError(f"{self.cls.__name__} is non-deterministic, but you set "
                            "'guaranteed_datapipes_determinism'. You can turn off determinism for "
                            "this DataPipe if that is acceptable for your application")
        return self.cls(*args, **kwargs)


def argument_validation(f):
    """Decorate a function whose arguments are pipes: their elements' types must fit the hints."""
    signature, hints = inspect.signature(f), get_type_hints(f)

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            hint = hints.get(name)
            origin = get_origin(hint)
            if not (isinstance(origin, type) and issubclass(origin, IterDataPipe)):
                continue
            if not isinstance(value, IterDataPipe):
                raise TypeError(
                    f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}")
            wanted = DataPipeType(get_args(hint)[0])
            if not value.type.issubtype(wanted):
                raise TypeError(f"Expected type of argument '{name}' as a subtype of hint "
                                f"{wanted}, but found {value.type}")
        return f(*args, **kwargs)
    return wrapper


def runtime_validation(f):
    """Decorate the `__iter__` of a pipe: each element must be of the type that the pipe states."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def wrapper(self):
        for value in f(self):
            if _settings["validation"] and not self.type.issubtype_of_instance(value):
                raise RuntimeError(f"Expected an instance as subtype of {self.type}, but found "
                                   f"{value}({type(value)})")
            yield value
    return wrapper
