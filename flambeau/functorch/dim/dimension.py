"""Dimensions as objects, lists of them, and their making: `i, j = dims()`."""
from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import flambeau
from flambeau.functorch.dim.bound import _Tensor


class DimensionMismatchError(Exception):
    """Dimensions do not go with the positions that they are to stand for."""


class DimensionBindError(Exception):
    """A dimension is bound to two sizes, or its size cannot be known."""


class Dim(_Tensor):
    """A dimension. Its size is that of the first dimension of a tensor that it is bound to; in ops
    it stands for its indices, 0 to size - 1.

    >>> i = Dim("i", 3)
    >>> (i * 2).order(i)
    tensor([0, 2, 4])
    """

    def __init__(self, name: str, s: int = -1):
        self._name, self._size = name, -1
        if s >= 0:
            self.size = s

    @property
    def size(self) -> int:
        """The number of indices.

        Raises:
            ValueError: the dimension is not bound.
        """
        if self._size < 0:
            raise ValueError(f"dimension {self._name} is unbound")
        return self._size

    @size.setter
    def size(self, value: int) -> None:
        if self._size not in (-1, value):
            raise DimensionBindError(
                f"Dim '{self._name}' previously bound to a dimension of size {self._size} cannot "
                f"bind to a dimension of size {value}")
        self._size = value

    @property
    def is_bound(self) -> bool:
        """Has it a size?"""
        return self._size >= 0

    def _get_tensor(self) -> flambeau.Tensor:
        return flambeau.arange(self.size)

    def _get_levels(self) -> list[Any]:
        return [self]

    def __repr__(self) -> str:
        return self._name


class DimList:
    """Several dimensions whose number may be known only when they are bound."""

    def __init__(self, len_or_dims: int | Sequence[Any] | None = None, name: str | None = None):
        self._name, self._dims = name, None
        if isinstance(len_or_dims, int):
            self.bind_len(len_or_dims)
        elif len_or_dims is not None:
            self._dims = [d if isinstance(d, Dim) else Dim(f"{name or 'dim'}{n}", d)
                          for n, d in enumerate(len_or_dims)]

    _dims: list[Dim] | None

    def bind_len(self, size: int) -> None:
        """Say how many dimensions these are."""
        if self._dims is None:
            self._dims = [Dim(f"{self._name or 'dim'}{n}") for n in range(size)]
        elif len(self._dims) != size:
            raise DimensionBindError(f"Dimlist has size {len(self._dims)} but it is being bound "
                                     f"to size {size}")

    def bind(self, sizes: Sequence[int]) -> None:
        """Say how many dimensions these are, and their sizes."""
        self.bind_len(len(sizes))
        for d, size in zip(self._bound(), sizes):
            d.size = size

    @property
    def is_bound(self) -> bool:
        """Is it known how many dimensions these are?"""
        return self._dims is not None

    @property
    def size(self) -> int:
        """The number of dimensions."""
        return len(self)

    def _bound(self) -> list[Dim]:
        if self._dims is None:
            raise DimensionBindError("DimList not bound")
        return self._dims

    def __len__(self) -> int:
        return len(self._bound())

    def __getitem__(self, key: Any) -> Any:
        found = self._bound()[key]
        return tuple(found) if isinstance(found, list) else found

    def __iter__(self) -> Iterator[Dim]:
        return iter(self._bound())

    def __repr__(self) -> str:
        return f"*{self._name}" if self._dims is None else repr(tuple(self._dims))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _Tensor.__torch_function__(func, types, args, kwargs)


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
