"""Sizes, dimensions and broadcasting.

Ops agree on three rules: a dimension may be counted from the end, shapes broadcast from the last
dimension on, and a tensor without dimensions takes part as if it had one. They stand here once, so
that all ops say the same, in PyTorch's words, where a call breaks one of them.
"""
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from operator import index
from typing import Any

from flambeau._support.c_functions import counted
from flambeau._support.c_functions import type_name as type_name_of
from flambeau._support.signatures import extended
from flambeau._support.torch_name import is_named_torch
from flambeau.kernels import set_error_name
from flambeau.kernels._extension import compiled
from flambeau.kernels.moving.views import contiguous_strides as contiguous_strides


@set_error_name("torch.Size")
class Size(tuple):
    """A tensor's shape: a tuple that knows its number of elements.

    >>> Size((2, 3)).numel()
    6
    """

    __slots__ = ()

    __signature__ = extended(lambda iterable=(), /: None)

    def __new__(cls, *args: Any, **kwargs: Any) -> Size:
        made = tuple.__new__(cls, *args, **kwargs)      # which says what is wrong with them
        for extent in made:
            if type(extent) is not int:
                return tuple.__new__(cls, [_as_extent(e, i) for i, e in enumerate(made)])
        return made

    @counted
    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def __getitem__(self, key: Any, /) -> Any:
        found = tuple.__getitem__(self, key)
        return as_size(Size, found) if type(key) is slice else found

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            if hasattr(type(other), "__radd__") and not isinstance(other, (int, float)):
                return NotImplemented           # it may know better
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to "
                            "torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return Size if is_named_torch() else _size, (tuple(self),)


def _size(extents: tuple[int, ...]) -> Size:
    return Size(extents)


as_size = tuple.__new__                 # `as_size(Size, extents)`: of extents that are known to fit


def _as_extent(extent: Any, place: int) -> Any:
    """An extent as an int: also one of NumPy, or in a tensor; symbols of sizes as they are."""
    try:
        return int(index(extent))
    except (TypeError, RuntimeError, ValueError):
        if hasattr(extent, "_array") or not type(extent).__module__.startswith("flambeau."):
            raise TypeError("torch.Size() takes an iterable of 'int' (item "
                            f"{place} is '{type_name_of(extent)}')") from None
    return extent


Size.__module__ = "torch"


def wrap_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front; IndexError if there is no such dimension."""
    n = ndim or 1
    try:
        fits = -n <= dim < n
    except TypeError:
        raise TypeError(f"argument 'dim' must be int, not {type_name_of(dim)}") from None
    if not fits:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], "
                         f"but got {dim})")
    return dim + n if dim < 0 else dim


def wrap_existing_dim(dim: int, ndim: int) -> int:
    """`wrap_dim` where a tensor without dimensions has not even one to be named."""
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def wrap_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """A `dim=` argument (an int or several) as distinct dimensions counted from the front."""
    if isinstance(dims, int):
        return (wrap_dim(dims, ndim),)
    try:
        given = [index(d) for d in dims]
    except TypeError:
        raise TypeError("argument 'dim' must be tuple of ints, not "
                        f"{type_name_of(dims)}") from None
    found = tuple([wrap_dim(d, ndim) for d in given])
    if len(set(found)) != len(found):
        twice = next(d for d in found if found.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return found


def size_of(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape meant by `f(2, 3)`, `f((2, 3))`, `f([2, 3])` or `f(torch.Size([2, 3]))`."""
    if len(sizes) == 1 and type(sizes[0]) is tuple:
        sizes = sizes[0]
    elif len(sizes) == 1 and not isinstance(sizes[0], int):
        only = sizes[0]
        if isinstance(only, Iterable) and not hasattr(only, "ndim"):
            sizes = tuple(only)
    try:
        return tuple([n if type(n) is int else n.__index__() for n in sizes])
    except (AttributeError, TypeError):
        wrong = next((n for n in sizes if not hasattr(n, "__index__")), sizes[0])
        raise TypeError(f"size must be integers, but found {type(wrong).__name__}: {wrong!r}") \
            from None


def broadcast_error(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError:
    """Why two shapes don't broadcast."""
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i] != b[-i] and a[-i] != 1 and b[-i] != 1:
            return RuntimeError(
                f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at "
                f"non-singleton dimension {max(len(a), len(b)) - i}\nshapes {list(a)} and "
                f"{list(b)} do not broadcast")
    return RuntimeError(f"shapes {list(a)} and {list(b)} do not broadcast")


def written_shape_error(own: Iterable[int], wanted: Iterable[int]) -> RuntimeError:
    """That a tensor of shape `own` cannot hold what broadcasts to `wanted`."""
    return RuntimeError(f"output with shape {list(own)} doesn't match the broadcast shape "
                        f"{list(wanted)}")


@compiled("broadcast_shapes")
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of operands with these shapes."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        if shape == result:
            continue
        n = max(len(shape), len(result))
        a = (1,) * (n - len(result)) + tuple(result)
        b = (1,) * (n - len(shape)) + tuple(shape)
        if any(x != y and x != 1 and y != 1 for x, y in zip(a, b)):
            raise broadcast_error(tuple(result), tuple(shape))
        result = tuple([y if x == 1 else x for x, y in zip(a, b)])
    return result


def refuse_negative(shape: Any, said: str = "") -> None:
    """Raise, with what is `said` if that is another text, unless a tensor may have that shape."""
    if shape and min(shape) < 0:
        if said:
            raise RuntimeError(said)
        wrong = next(n for n in shape if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {wrong}: {[*shape]}")


def extents_of(*size: Any, said: str = "") -> tuple[int, ...]:
    """`size_of` a new tensor: raises where there is no such tensor."""
    shape = size_of(size)
    refuse_negative(shape, said)
    if shape and prod(shape) >= 2**60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return shape


def is_expandable_to(shape: tuple[int, ...], desired: tuple[int, ...]) -> bool:
    """Can a tensor of `shape` be expanded to the `desired` one?"""
    return len(shape) <= len(desired) and all(
        a == b or a == 1 for a, b in zip(reversed(shape), reversed(desired)))
