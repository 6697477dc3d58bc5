"""Grids of numbers: how the places of a mesh are laid over the ranks.

A `_FlatLayout` is one dimension of a mesh: sizes and strides whose numbers are `Σ index · stride`,
the last index changing fastest. `(2, 4):(8, 1)` stands for 0 1 2 3 8 9 10 11. A `_MeshLayout` is a
sequence of such dimensions. The operations are those of the layout algebra of CuTe
(https://docs.nvidia.com/cutlass/media/docs/cpp/cute/02_layout_algebra.html), in row-major order.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.distributed._pycute.int_tuple import flatten
from flambeau.distributed._pycute.layout import Layout, complement, composition

Nested = Any                            # an int, or a tuple of such


def _contiguous(sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(sizes[i + 1:]) for i in range(len(sizes)))


def _coalesced(sizes: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int]]:
    """The same numbers in as few dimensions as possible."""
    shape: list[int] = []
    steps: list[int] = []
    for size, stride in zip(sizes, strides):
        if size == 1:
            continue
        if shape and steps[-1] == size * stride:
            shape[-1], steps[-1] = shape[-1] * size, stride
        else:
            shape.append(size), steps.append(stride)
    return shape, steps


@dataclass(frozen=True, init=False)
class _FlatLayout:
    """Numbers `Σ index · stride`, for all indices below `shape`.

    >>> _FlatLayout((2, 4), (8, 1)).all_ranks_from_zero()
    [0, 1, 2, 3, 8, 9, 10, 11]
    >>> _FlatLayout((2, 2), (2, 1))
    _FlatLayout(shape=(4,), stride=(1,))
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]

    def __init__(self, shape: Nested, stride: Nested = None) -> None:
        sizes = flatten(shape)
        steps = _contiguous(sizes) if stride is None else flatten(stride)
        shape, stride = _coalesced(sizes, steps)
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "stride", tuple(stride))

    def __len__(self) -> Any:
        raise TypeError("_FlatLayout has no length: numel() is the number of its numbers")

    def __getitem__(self, i: int) -> Any:
        raise TypeError("_FlatLayout has no entries: sizes_and_strides are its dimensions")

    @property
    def sizes_and_strides(self) -> Iterator[tuple[int, int]]:
        """Size and stride of each dimension."""
        return zip(self.shape, self.stride)

    def numel(self) -> int:
        """How many numbers there are."""
        return prod(self.shape)

    def cosize(self) -> int:
        """One more than the largest number."""
        return 1 + sum((size - 1) * stride for size, stride in self.sizes_and_strides)

    def all_ranks_from_zero(self) -> list[int]:
        """The numbers."""
        ranges = (range(0, size * stride, stride) if stride else [0] * size
                  for size, stride in self.sizes_and_strides)
        return [sum(parts) for parts in itertools.product(*ranges)]

    def global_ranks(self, world_size: int) -> list[list[int]]:
        """The numbers, shifted so that together they are those below `world_size`."""
        ranks = self.all_ranks_from_zero()
        return [[offset + rank for rank in ranks]
                for offset in self.complement(world_size).all_ranks_from_zero()]

    @property
    def _layout(self) -> Layout:
        return Layout(self.shape, self.stride) if self.shape else Layout(1, 0)

    def complement(self, world_size: int) -> _FlatLayout:
        """The offsets at which copies of this layout fill the numbers below `world_size`."""
        found = complement(self._layout, world_size)
        return _FlatLayout(found.shape, found.stride)

    def composition(self, layout: _MeshLayout) -> _MeshLayout:
        """This layout at the numbers of another: `result(i) = self(layout(i))`."""
        return _MeshLayout([self._at(axis) for axis in layout])

    def _at(self, axis: _FlatLayout) -> _FlatLayout:
        found = composition(self._layout, axis._layout)
        return _FlatLayout(found.shape, found.stride)

    def check_sorted(self) -> bool:
        """Do the strides fall?"""
        return all(a >= b for a, b in zip(self.stride, self.stride[1:]))

    def check_orthogonal(self) -> bool:
        """Does each dimension step over all that the finer ones reach?"""
        order = sorted(zip(self.stride, self.shape), reverse=True)
        return all(a % (size * b) == 0 for (a, _), (b, size) in zip(order, order[1:]))


@dataclass(frozen=True, init=False)
class _MeshLayout(Sequence):
    """The dimensions of a mesh, a `_FlatLayout` each.

    >>> _MeshLayout.from_sizes_strides((2, 2), (4, 1)).collapse()
    _FlatLayout(shape=(2, 2), stride=(4, 1))
    """

    axes: tuple[_FlatLayout, ...]

    def __init__(self, axes: Sequence[_FlatLayout]) -> None:
        object.__setattr__(self, "axes", tuple(axes))

    @classmethod
    def from_sizes_strides(cls, sizes: tuple[int, ...], strides: tuple[int, ...] | None = None
                           ) -> _MeshLayout:
        """Dimensions of these sizes, contiguous unless strides are given."""
        steps = _contiguous(sizes) if strides is None else strides
        if len(steps) != len(sizes):
            raise ValueError("sizes and strides must have the same length, got "
                             f"{len(sizes)} and {len(steps)}")
        return cls([_FlatLayout(size, stride) for size, stride in zip(sizes, steps)])

    def __len__(self) -> int:
        return len(self.axes)

    def __iter__(self) -> Iterator[_FlatLayout]:
        return iter(self.axes)

    def __getitem__(self, i: Any) -> Any:
        return _MeshLayout(self.axes[i]) if isinstance(i, slice) else self.axes[i]

    @property
    def top_level_sizes(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return tuple(axis.numel() for axis in self.axes)

    def numel(self) -> int:
        """How many places there are."""
        return prod(self.top_level_sizes)

    def cosize(self) -> int:
        """One more than the largest number."""
        return self.collapse().cosize()

    def collapse(self) -> _FlatLayout:
        """All dimensions as one."""
        return _FlatLayout(tuple(a.shape for a in self.axes), tuple(a.stride for a in self.axes))

    def splice(self, start: int, end: int, layout: _MeshLayout) -> _MeshLayout:
        """The dimensions of another layout in place of those from `start` to `end`."""
        return _MeshLayout([*self.axes[:start], *layout, *self.axes[end:]])

    def remap_to_tensor(self, rank_map: Tensor) -> Tensor:
        """The ranks at the places of the layout, and of all its copies beside it."""
        whole = self.collapse()
        others = whole.complement(rank_map.numel())
        found = rank_map.contiguous().as_strided((*others.shape, *whole.shape),
                                                 (*others.stride, *whole.stride))
        return found.reshape(-1, *self.top_level_sizes)
