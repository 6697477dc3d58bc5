"""The named tuples of functions that give several results.

>>> import flambeau
>>> flambeau.tensor([[1.0, 3.0], [2.0, 0.0]]).max(dim=1)
torch.return_types.max(
values=tensor([3., 2.]),
indices=tensor([1, 0]))
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from inspect import Parameter, Signature
from operator import itemgetter
from typing import Any


class ReturnType(tuple):
    """A tuple whose elements have names; made from the elements, or from one sequence of them."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    n_unnamed_fields = 0
    __signature__ = Signature([Parameter("iterable", Parameter.POSITIONAL_ONLY, default=())])

    def __new__(cls, *values: Any) -> Any:
        if len(values) == 2 and isinstance(values[1], dict):        # as pickles of PyTorch have it
            values = values[:1]
        if len(values) == 1 and len(cls._fields) != 1:
            if not isinstance(values[0], Iterable):
                raise TypeError("constructor requires a sequence")
            values = tuple(values[0])
        if len(values) != len(cls._fields):
            raise TypeError(f"torch.return_types.{cls.__name__}() takes a "
                            f"{len(cls._fields)}-sequence ({len(values)}-sequence given)")
        return tuple.__new__(cls, values)

    def __repr__(self) -> str:
        inner = ",\n".join([f"{name}={value!r}" for name, value in zip(self._fields, self)])
        return f"torch.return_types.{type(self).__name__}(\n{inner})"

    def __reduce__(self) -> Any:
        return type(self), (tuple(self), {})


def declare(name: str, fields: str) -> type:
    """The class of results with these names, made once for all overloads of a function."""
    names = tuple(fields.split())
    made: Any = globals().get(name)
    if made is None or made._fields != names:
        members: dict[str, Any] = {n: property(itemgetter(i)) for i, n in enumerate(names)}
        members |= {"__slots__": (), "_fields": names, "__match_args__": names,
                    "n_fields": len(names), "n_sequence_fields": len(names)}
        made = globals()[name] = type(name, (ReturnType,), members)
        made.__module__ = __name__
        for see in watchers:
            see(made)
    return made


def with_out(results: type) -> type:
    """The class of the same results when they were stored into `out=`."""
    fields: tuple[str, ...] = results._fields            # type: ignore[attr-defined]
    return declare(f"{results.__name__}_out", " ".join(fields))


watchers: list[Callable[[type], None]] = []         # what is told of each class that is made


@cache
def _declared() -> dict[str, str]:
    """The names of results, of all public functions whose schemas have them."""
    from flambeau.core.op import table
    from flambeau.ops import load
    load()
    found = {"_unpack_dual": "primal tangent"}
    for op in table.values():
        schema = op.schema
        if schema is None or len(schema.results) < 2 or not op.declaration.function \
                or not all(schema.result_names):
            continue
        found[op.name] = " ".join(schema.result_names)
        if op.name[0] != "_" and not any(result.is_list for result in schema.results):
            found[f"{op.name}_out"] = found[op.name]
    return found


def __getattr__(name: str) -> Any:
    """Each class is made when it is first asked for."""
    if name[:2] == "__" or name not in _declared():
        raise AttributeError(f"module 'flambeau.return_types' has no attribute {name!r}")
    return declare(name, _declared()[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *_declared()})
