"""Integers and nested tuples of them: shapes, strides, coordinates. The last entry of a tuple
changes fastest."""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from flambeau.distributed._pycute.typing import Integer

__all__ = ["IntTuple", "as_tuple", "crd2crd", "crd2idx", "elem_scale", "flatten", "has_none",
           "idx2crd", "inner_product", "is_int", "is_tuple", "match_structure", "product",
           "shape_div", "signum", "slice_", "suffix_product", "tuple_max"]

IntTuple = Any                          # an integer, or a tuple of such


def is_int(x: object) -> bool:
    """Is it an integer?"""
    return isinstance(x, Integer)


def is_tuple(x: object) -> bool:
    """Is it a tuple?"""
    return isinstance(x, tuple)


def as_tuple(x: IntTuple) -> tuple[Any, ...]:
    """A tuple as it is, an integer in a tuple."""
    return x if isinstance(x, tuple) else (x,)


def match_structure(a: IntTuple, b: IntTuple) -> bool:
    """Are both nested in the same way?"""
    if is_tuple(a) and is_tuple(b):
        return len(a) == len(b) and all(map(match_structure, a, b))
    return is_int(a) and is_int(b)


def flatten(t: IntTuple) -> tuple[int, ...]:
    """The integers in order.

    >>> flatten(((1, 2), 3))
    (1, 2, 3)
    """
    return tuple(n for part in t for n in flatten(part)) if is_tuple(t) else (t,)


def signum(a: int) -> int:
    """-1, 0 or 1."""
    return (a > 0) - (a < 0)


def product(a: IntTuple) -> int:
    """The product of all."""
    return prod(flatten(a))


def inner_product(a: IntTuple, b: IntTuple) -> int:
    """The sum of the products of what has the same place."""
    return sum(map(inner_product, a, b)) if is_tuple(a) else a * b


def tuple_max(a: IntTuple) -> int:
    """The largest."""
    return max(flatten(a))


def elem_scale(a: IntTuple, b: IntTuple) -> IntTuple:
    """Each times what `b` has at its place."""
    if is_tuple(a):
        return tuple(map(elem_scale, a, b))
    return a * product(b)


def shape_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """A shape with so many times fewer elements: the first entries are used up first.

    >>> shape_div((3, 4), 6)
    (1, 2)
    """
    if not is_tuple(a):
        b = product(b)
        assert a % b == 0 or b % a == 0, f"{a} and {b} do not divide one another"
        return -(-a // b)
    if is_tuple(b):
        return tuple(map(shape_div, a, b))
    found = []
    for part in a:
        found.append(shape_div(part, b))
        b = shape_div(b, product(part))
    return tuple(found)


def suffix_product(a: IntTuple, init: IntTuple = 1) -> IntTuple:
    """The strides of a shape whose elements lie one after the other, `init` apart.

    >>> suffix_product((2, (3, 4)))
    (12, (4, 1))
    """
    if not is_tuple(a):
        return init
    if is_tuple(init):
        return tuple(map(suffix_product, a, init))
    found = []
    for part in reversed(a):
        found.append(suffix_product(part, init))
        init *= product(part)
    return tuple(reversed(found))


def _strides(shape: IntTuple, stride: IntTuple | None) -> IntTuple:
    return suffix_product(shape) if stride is None else stride


def idx2crd(idx: IntTuple, shape: IntTuple, stride: IntTuple | None = None) -> IntTuple:
    """The coordinate of the element of that number.

    >>> idx2crd(5, (2, 4))
    (1, 1)
    """
    stride = _strides(shape, stride)
    if is_tuple(idx):
        return tuple(map(idx2crd, idx, shape, stride))
    if is_tuple(shape):
        return tuple(idx2crd(idx, s, d) for s, d in zip(shape, stride))
    return idx // stride % shape


def crd2idx(crd: IntTuple | None, shape: IntTuple, stride: IntTuple | None = None) -> int:
    """The number of the element of that coordinate; None counts as 0."""
    stride = _strides(shape, stride)
    if is_tuple(crd):
        return sum(map(crd2idx, crd, shape, stride))
    rest: Any = crd or 0
    if not is_tuple(shape):
        return rest * stride
    total = 0
    for s, d in reversed(list(zip(shape[1:], stride[1:]))):
        total += crd2idx(rest % product(s), s, d)
        rest //= product(s)
    return total + crd2idx(rest, shape[0], stride[0])


def crd2crd(crd: IntTuple, dst_shape: IntTuple, src_shape: IntTuple | None = None) -> IntTuple:
    """The coordinate that an element has in another shape."""
    if is_tuple(crd):
        if is_tuple(dst_shape):
            return tuple(map(crd2crd, crd, dst_shape))
        assert src_shape is not None, "the shape that the coordinate belongs to is needed"
        return crd2idx(crd, src_shape)
    return idx2crd(crd, dst_shape) if is_tuple(dst_shape) else crd


def slice_(crd: Any, trg: Any) -> Any:
    """What a tuple has where a coordinate has None.

    >>> slice_((None, (None, 1)), (3, (4, 5)))
    (3, 4)
    """
    if is_tuple(crd):
        pick: Callable[..., Any] = slice_
        return tuple(found for part in map(pick, crd, trg) for found in part)
    return (trg,) if crd is None else ()


def has_none(a: Any) -> bool:
    """Is there a None in it?"""
    return any(map(has_none, a)) if is_tuple(a) else a is None
