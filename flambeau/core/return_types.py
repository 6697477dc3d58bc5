"""Named tuples of several results: the classes that `flambeau.return_types` shows.

>>> Pair = declare("pair", "first second")
>>> Pair((1, 2)).second
2
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, wraps
from inspect import Parameter, Signature
from operator import itemgetter
from typing import Any

from flambeau._support.own_methods import belong


class ReturnType(tuple):
    """A tuple whose elements have names; made from the elements, or from one sequence of them."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()
    n_unnamed_fields = 0
    __signature__ = Signature([Parameter("iterable", Parameter.POSITIONAL_ONLY, default=())])

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == len(cls.__match_args__) > 1 and not isinstance(args[0], list | tuple):
            return tuple.__new__(cls, args)             # one by one
        if len(args) == 1 and not kwargs and type(args[0]) is tuple \
                and len(args[0]) == len(cls.__match_args__):
            return tuple.__new__(cls, args[0])
        name, count = f"torch.return_types.{cls.__name__}", len(args) + len(kwargs)
        if count > 2:
            raise TypeError(f"structseq() takes at most 2 arguments ({count} given)")
        given = dict(zip(("sequence", "dict"), args)) | kwargs
        if "sequence" not in given:
            raise TypeError("structseq() missing required argument 'sequence' (pos 1)")
        for unknown in given.keys() - {"sequence", "dict"}:
            raise TypeError(f"{unknown!r} is an invalid keyword argument for structseq()")
        if not isinstance(given["sequence"], Iterable):
            raise TypeError("constructor requires a sequence")
        values = tuple(given["sequence"])
        if not isinstance(given.get("dict", {}), dict):     # of what is no element: there is none
            raise TypeError(f"{name}() takes a dict as second arg, if any")
        if len(values) != len(cls.__match_args__):
            raise TypeError(f"{name}() takes a {len(cls.__match_args__)}-sequence "
                            f"({len(values)}-sequence given)")
        return tuple.__new__(cls, values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'torch.return_types.{type(self).__name__}' object has no attribute "
                             f"{name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)
        raise AttributeError("readonly attribute")

    def __repr__(self) -> str:
        inner = ",\n".join([f"{name}={value!r}" for name, value in zip(self.__match_args__, self)])
        return f"torch.return_types.{type(self).__name__}(\n{inner})"

    def __reduce__(self) -> Any:
        return type(self), (tuple(self), {})


belong("flambeau.return_types", ReturnType)


@cache
def declare(name: str, fields: str) -> type:
    """The class of results with these names, made once for all overloads of a function."""
    names = tuple(fields.split())
    members: dict[str, Any] = {n: property(itemgetter(i)) for i, n in enumerate(names)}
    members |= {"__module__": ReturnType.__module__, "__slots__": (),
                "__match_args__": names, "n_fields": len(names), "n_sequence_fields": len(names)}
    made = type(name, (ReturnType,), members)
    for see in watchers:
        see(made)
    return made


def with_out(results: type) -> type:
    """The class of the same results when they were stored into `out=`."""
    fields: tuple[str, ...] = results.__match_args__     # type: ignore[attr-defined]
    return declare(f"{results.__name__}_out", " ".join(fields))


def named(body: Callable[..., Any], results: Any) -> Callable[..., Any]:
    """The body of an op made of others, whose several results come in that class."""
    if not isinstance(results, type) or not issubclass(results, ReturnType):
        return body

    @wraps(body)
    def run(*values: Any, **options: Any) -> Any:
        return results(body(*values, **options))
    return run


watchers: list[Callable[[type], None]] = []         # what is told of each class that is made
