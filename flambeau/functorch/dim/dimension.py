"""Making dimensions, named after the variables that they are assigned to: `i, j = dims()`."""
from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from flambeau.functorch.dim.bound import Dim, DimList


class DimensionMismatchError(Exception):
    """Dimensions do not go with the positions that they are to stand for."""


# ---- making them --------------------------------------------------------------------------------

_SKIPPED = ("CACHE", "COPY", "DUP_TOP", "EXTENDED_ARG", "NOP", "PRECALL")


def _assigned_names(frame: FrameType | None) -> tuple[list[str], bool]:
    """The names that the result of the call which runs in `frame` is assigned to, and whether
    they take it apart, as its next instructions say."""
    if frame is None:
        return [], False
    steps = iter([s for s in dis.get_instructions(frame.f_code)
                  if s.offset > frame.f_lasti and s.opname not in _SKIPPED])
    names: list[str] = []
    wanted, apart = 1, False
    for step in steps:
        if step.opname == "UNPACK_SEQUENCE" and not apart:
            wanted, apart = step.argval, True
        elif step.opname.startswith("STORE_"):
            found = step.argval
            names += list(found) if isinstance(found, tuple) else [found]
        else:
            break
        if len(names) >= wanted:
            return names[:wanted], apart
    return [], apart


def _make(kind: Callable[[str, Any], Any], function: str, n: int | None, sizes: Any,
          frame: FrameType | None) -> Any:
    names, apart = _assigned_names(frame)
    if sizes is not None and n is None:
        n = len(sizes)
    if n is None:
        if not names:
            raise SyntaxError(f"{function}() must be assigned to a sequence of variable names or "
                              "have argument n specified")
        n = len(names)
    if sizes is not None and len(sizes) != n:
        raise ValueError(f"expected {n} sizes but found {len(sizes)}")
    if len(names) != n or (n > 1 and not apart):
        names = [f"d{number}" for number in range(n)]
    made = tuple([kind(name, None if sizes is None else size)
                  for name, size in zip(names, sizes or [None] * n)])
    return made[0] if n == 1 and not apart else made


def dims(n: int | None = None, sizes: Sequence[int | None] | None = None) -> Any:
    """`n` new dimensions; without `n`, as many as there are names that they are assigned to, which
    they show.

    >>> width, height = dims()
    >>> width, height
    (width, height)
    >>> dims(sizes=[2, 3])[1].size
    3

    Raises:
        SyntaxError: neither `n` nor names to assign to.
    """
    return _make(lambda name, size: Dim(name, -1 if size is None else size), "dims", n, sizes,
                 sys._getframe(1))


def dimlists(n: int | None = None, sizes: Sequence[Any] | None = None) -> Any:
    """`n` new lists of dimensions, in the way of `dims`.

    >>> batch = dimlists()
    >>> x = torch.ones(2, 3, 4)[batch, 0]
    >>> batch
    (batch0, batch1)
    """
    return _make(lambda name, size: DimList(size, name), "dimlists", n, sizes, sys._getframe(1))
