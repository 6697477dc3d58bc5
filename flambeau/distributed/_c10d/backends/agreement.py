"""Do all processes call the same collective?

Each call has a digest of its name, its tensors' types and sizes, its reduction and its root. The
processes compare digests before data moves; if they differ, each learns what the others have
called, and where, and raises.
"""
from __future__ import annotations

import functools
import hashlib
import math
import pickle
from typing import Any, NamedTuple

from flambeau import Tensor
from flambeau.distributed._c10d.refusals import place_in_words

_MASK = (1 << 62) - 1
_STEP = 0x9E3779B97F4A7C15              # so that the same call later has another digest
_SHOWN = 8                              # tensors of a call in messages


class Call(NamedTuple):
    """What the calls of all processes have in common."""
    name: str
    types: tuple[Any, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    detail: str = ""                    # the reduction, the root

    def __str__(self) -> str:
        tensors = ", ".join(f"{str(t).removeprefix('torch.')}{list(s)}"
                            for t, s in zip(self.types[:_SHOWN], self.shapes[:_SHOWN]))
        more = f", … {len(self.shapes)} tensors" if len(self.shapes) > _SHOWN else ""
        return f"{self.name}({tensors}{more}{', ' if self.detail and tensors else ''}{self.detail})"


def call_of(name: str, tensors: list[Tensor], detail: str = "") -> Call:
    """A call with these tensors."""
    if len(tensors) == 1:
        tensor = tensors[0]
        return Call(name, (tensor.dtype,), (tensor.shape,), detail)
    return Call(name, tuple(t.dtype for t in tensors), tuple(t.shape for t in tensors), detail)


@functools.lru_cache(maxsize=1024)
def _digest(call: Call) -> int:
    text = repr((call.name, [str(t) for t in call.types], [list(s) for s in call.shapes],
                 call.detail))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def code(call: Call, number: int) -> int:
    """A number of 62 bits for the call that is the `number`th of its group."""
    return (_digest(call) + number * _STEP) & _MASK


def in_words(call: Call, number: int, place: Any) -> bytes:
    """The call as bytes, for the others; more bytes may follow them."""
    return pickle.dumps((call.name, [str(t) for t in call.types], [list(s) for s in call.shapes],
                         call.detail, number, place_in_words(place)))


def check(found: list[bytes], ranks: list[int]) -> None:
    """Raise unless what the processes of these ranks have called can be one collective: tensors
    may be flat with one and have more dimensions with the other."""
    calls = [pickle.loads(data) for data in found]
    first = calls[0]
    other = next((i for i, call in enumerate(calls) if not _fit(first, call)), None)
    if other is None:
        return
    differ = _differences(first, calls[other])
    lines = [f"\n  {_named([ranks[i] for i in same])}: {_worded(calls[same[0]])}"
             for same in _alike(calls)]
    raise RuntimeError(
        f"Detected mismatch between collectives on ranks. Rank {ranks[0]} is running collective: "
        f"{_worded(first)}, but Rank {ranks[other]} is running collective: "
        f"{_worded(calls[other])}. Collectives differ in the following aspects: {differ}"
        + (f"\nAll ranks:{''.join(lines)}" if len(calls) > 2 else ""))


def _fit(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return (a[0], a[1], a[3], a[4]) == (b[0], b[1], b[3], b[4]) and len(a[2]) == len(b[2]) and all(
        map(_same_elements, a[2], b[2]))


def _same_elements(a: list[int], b: list[int]) -> bool:
    one, two = ([n for n in shape if n != 1] for shape in (a, b))
    return one == two or (math.prod(a) == math.prod(b) and 1 in (len(one), len(two)))


def _alike(calls: list[Any]) -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for i, call in enumerate(calls):
        groups.setdefault(repr(call), []).append(i)
    return list(groups.values())


def _named(ranks: list[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def _worded(call: tuple[Any, ...]) -> str:
    name, types, shapes, detail, number, where = call
    return f"{Call(name, tuple(types), tuple(shapes), detail)} #{number}{where}"


def _differences(a: tuple[Any, ...], b: tuple[Any, ...]) -> str:
    labels = ("Op type", "Tensor dtypes", "Tensor shapes", "Reduction or root", "Sequence number")
    return ", ".join(f"{label}: {_difference(x, y)}" for label, x, y in zip(labels, a, b)
                     if x != y)


def _difference(x: Any, y: Any) -> str:
    if not isinstance(x, list) or max(len(x), len(y)) <= _SHOWN:
        return f"{x} vs {y}"
    if len(x) != len(y):
        return f"{len(x)} vs {len(y)} tensors"
    differ = [i for i, (one, two) in enumerate(zip(x, y)) if one != two]
    at = next((i for i in differ if isinstance(x[i], str) or not _same_elements(x[i], y[i])),
              differ[0])
    return f"{x[at]} vs {y[at]} of tensor {at}"
