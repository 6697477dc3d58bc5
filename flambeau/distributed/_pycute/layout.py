"""Layouts: functions from coordinates to numbers, `Σ index · stride`, and their algebra, that of
CuTe (https://docs.nvidia.com/cutlass/media/docs/cpp/cute/02_layout_algebra.html), in row-major
order."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau.distributed._pycute.int_tuple import (
    IntTuple,
    crd2idx,
    flatten,
    has_none,
    is_int,
    is_tuple,
    product,
    slice_,
    suffix_product,
)

__all__ = ["Layout", "LayoutBase", "coalesce", "complement", "composition", "cosize", "filter",
           "is_layout", "left_inverse", "logical_divide", "logical_product", "make_layout",
           "right_inverse", "size", "slice_and_offset", "tiled_divide", "tiled_product",
           "zipped_divide", "zipped_product"]


class LayoutBase:
    """What `is_layout` asks for."""


def is_layout(x: object) -> bool:
    """Is it a layout?"""
    return isinstance(x, LayoutBase)


class Layout(LayoutBase):
    """A shape, and the strides of its dimensions.

    >>> Layout((2, 4))(1, 2), Layout((2, 4))(None, 1)
    (6, Layout((2,),(4,)))
    """

    def __init__(self, _shape: IntTuple, _stride: IntTuple | None = None) -> None:
        self.shape = _shape
        self.stride = suffix_product(_shape) if _stride is None else _stride

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.shape, self.stride) == (
            other.shape, other.stride)

    def __hash__(self) -> int:
        return hash((self.shape, self.stride))

    def __len__(self) -> int:
        return len(self.shape) if is_tuple(self.shape) else 1

    def __call__(self, *args: Any) -> Any:
        crd = args[0] if len(args) == 1 else args
        if has_none(crd):
            return Layout(slice_(crd, self.shape), slice_(crd, self.stride))
        return crd2idx(crd, self.shape, self.stride)

    def __iter__(self) -> Iterator[Layout]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> Layout:
        if is_tuple(self.shape):
            return Layout(self.shape[i], self.stride[i])
        if i != 0:
            raise IndexError(i)
        return self

    def size(self) -> int:
        """How many coordinates there are."""
        return product(self.shape)

    def cosize(self) -> int:
        """One more than the number of the last coordinate."""
        return self(self.size() - 1) + 1

    def __str__(self) -> str:
        return f"{self.shape}:{self.stride}"

    def __repr__(self) -> str:
        return f"Layout({self.shape},{self.stride})"


def make_layout(*layouts: Any) -> Layout:
    """A layout whose dimensions are others."""
    given = layouts[0] if len(layouts) == 1 and not is_layout(layouts[0]) else layouts
    return Layout(tuple(one.shape for one in given), tuple(one.stride for one in given))


def size(layout: Any) -> int:
    """How many coordinates a layout, or a shape, has."""
    return layout.size() if is_layout(layout) else product(layout)


def cosize(layout: Layout) -> int:
    """One more than the number of the last coordinate."""
    return layout.cosize()


def _reversed(shape: list[int], stride: list[int]) -> Layout:
    """A layout of dimensions from the last to the first."""
    return Layout(shape[0], stride[0]) if len(shape) == 1 else \
        Layout(tuple(reversed(shape)), tuple(reversed(stride)))


def _by_dimension(function: Callable[[Layout, Any], Layout], layout: Layout, others: Any
                  ) -> Layout:
    """A function of each dimension and what `others` has for it; the rest as it is."""
    assert len(layout) >= len(others)
    return make_layout([*map(function, layout, others),
                        *(layout[i] for i in range(len(others), len(layout)))])


def coalesce(layout: Layout, profile: Any = None) -> Layout:
    """The same function in as few dimensions as possible; with a profile, in each dimension.

    >>> coalesce(Layout((2, (1, 6)), (6, (6, 1))))
    Layout(12,1)
    """
    if is_tuple(profile):
        return _by_dimension(coalesce, layout, profile)
    shape, stride = [1], [0]
    for s, d in reversed(list(zip(flatten(layout.shape), flatten(layout.stride)))):
        if s == 1:
            continue
        if shape[-1] == 1:
            shape[-1], stride[-1] = s, d
        elif shape[-1] * stride[-1] == d:
            shape[-1] *= s
        else:
            shape.append(s), stride.append(d)
    return _reversed(shape, stride)


def filter(layout: Layout, profile: Any = None) -> Layout:
    """The layout without dimensions in which the number does not change."""
    if is_tuple(profile):
        return _by_dimension(filter, layout, profile)
    kept = [(s, d) for s, d in zip(flatten(layout.shape), flatten(layout.stride))
            if s != 1 and d != 0]
    return coalesce(Layout(tuple(s for s, _ in kept), tuple(d for _, d in kept))) if kept else \
        Layout(1, 0)


def composition(layoutA: Layout, layoutB: Any) -> Layout:
    """`A(B(i))`; a tuple has an entry for each dimension of `A`."""
    if layoutB is None:
        return layoutA
    if is_int(layoutB):
        return composition(layoutA, Layout(layoutB))
    if is_tuple(layoutB):
        return _by_dimension(composition, layoutA, layoutB)
    if is_tuple(layoutB.shape):
        return make_layout([composition(layoutA, one) for one in layoutB])
    if layoutB.stride == 0:
        return Layout(layoutB.shape, 0)
    shape: list[int] = []
    stride: list[int] = []
    rest, step = layoutB.shape, layoutB.stride
    flat = coalesce(layoutA)
    sizes, strides = flatten(flat.shape), flatten(flat.stride)
    for s, d in reversed(list(zip(sizes[1:], strides[1:]))):
        assert s % step == 0 or step % s == 0, f"{layoutA} cannot be taken at {layoutB}"
        here = min(max(1, s // step), rest)
        if here != 1:
            shape.append(here), stride.append(step * d)
        rest, step = rest // here, -(-step // s)
    if rest != 1 or not shape:
        shape.append(rest), stride.append(step * strides[0])
    return _reversed(shape, stride)


def complement(layout: Any, max_idx: int = 1) -> Layout:
    """The offsets at which copies of a layout fill the numbers below `max_idx`.

    >>> complement(Layout((4, 2), (1, 8)), 24)
    Layout((2, 2),(16, 4))
    """
    if is_int(layout):
        return complement(Layout(layout), max_idx)
    shape: list[int] = []
    stride: list[int] = []
    reached = 1
    for d, s in sorted(zip(flatten(layout.stride), flatten(layout.shape))):
        if d == 0 or s == 1:
            continue
        assert reached <= s * d, f"{layout} overlaps itself"
        shape.append(d // reached), stride.append(reached)
        reached = s * d
    shape.append(-(-max_idx // reached)), stride.append(reached)
    return coalesce(Layout(tuple(reversed(shape)), tuple(reversed(stride))))


def right_inverse(layout: Any) -> Any:
    """A layout `R` with `layout(R(i)) == i`, for as many i as possible."""
    if layout is None:
        return None
    if is_int(layout):
        return Layout(layout)
    shape: list[int] = []
    stride: list[int] = []
    reached, sizes = 1, flatten(layout.shape)
    for d, s, number in sorted(zip(flatten(layout.stride), sizes, suffix_product(sizes))):
        if s == 1:
            continue
        if d != reached:
            break
        shape.append(s), stride.append(number)
        reached = s * d
    return coalesce(Layout(tuple(reversed(shape)), tuple(reversed(stride))))


def left_inverse(layout: Any) -> Any:
    """A layout `L` with `L(layout(i)) == i`."""
    if layout is None:
        return None
    if is_int(layout):
        return Layout(layout)
    return right_inverse(make_layout(complement(layout), layout))


# ---- cutting and repeating ----------------------------------------------------------------------

def logical_divide(layoutA: Layout, layoutB: Any) -> Layout:
    """`A` in pieces as `B` chooses them: within a piece, and over the pieces."""
    if layoutB is None:
        return layoutA
    if is_int(layoutB):
        return logical_divide(layoutA, Layout(layoutB))
    if is_tuple(layoutB):
        return _by_dimension(logical_divide, layoutA, layoutB)
    return composition(layoutA, make_layout(layoutB, complement(layoutB, size(layoutA))))


def logical_product(layoutA: Layout, layoutB: Any) -> Layout:
    """Copies of `A`, placed as `B` says."""
    if layoutB is None:
        return layoutA
    if is_int(layoutB):
        return logical_product(layoutA, Layout(layoutB))
    if is_tuple(layoutB):
        return _by_dimension(logical_product, layoutA, layoutB)
    room = complement(layoutA, size(layoutA) * cosize(layoutB))
    return make_layout(layoutA, composition(room, layoutB))


def hier_unzip(splitter: Callable[..., Layout], layoutA: Layout, layoutB: Any) -> Layout:
    """What a function of two parts gives for each dimension: all first parts, all second ones."""
    if layoutB is None:
        return make_layout(Layout(1, 0), layoutA)
    if not is_tuple(layoutB):
        return splitter(layoutA, layoutB)
    assert len(layoutA) >= len(layoutB)
    split = [hier_unzip(splitter, a, b) for a, b in zip(layoutA, layoutB)]
    rest = [layoutA[i] for i in range(len(layoutB), len(layoutA))]
    return make_layout(make_layout([one[0] for one in split]),
                       make_layout([*(one[1] for one in split), *rest]))


def _opened(layout: Layout) -> Layout:
    """The first part as one dimension, the second one dimension by dimension."""
    return make_layout([layout[0], *layout[1]])


def zipped_divide(layoutA: Layout, layoutB: Any) -> Layout:
    """`logical_divide`: all that is within a piece, then all that is over them."""
    return hier_unzip(logical_divide, layoutA, layoutB)


def tiled_divide(layoutA: Layout, layoutB: Any) -> Layout:
    """`zipped_divide`, whose pieces have their own dimensions."""
    return _opened(zipped_divide(layoutA, layoutB))


def zipped_product(layoutA: Layout, layoutB: Any) -> Layout:
    """`logical_product`: all that is within a copy, then all that is over them."""
    return hier_unzip(logical_product, layoutA, layoutB)


def tiled_product(layoutA: Layout, layoutB: Any) -> Layout:
    """`zipped_product`, whose copies have their own dimensions."""
    return _opened(zipped_product(layoutA, layoutB))


def slice_and_offset(crd: tuple[Any, ...], layout: Layout) -> tuple[Layout, int]:
    """The layout of the dimensions that are None in a coordinate, and where it begins."""
    return (Layout(slice_(crd, layout.shape), slice_(crd, layout.stride)),
            crd2idx(crd, layout.shape, layout.stride))
