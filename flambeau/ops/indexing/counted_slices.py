"""Batching rules of ops whose results are as long as the values say.

One call finds what all slices have, in order of the slices, and it is cut where they begin: which
needs equally many in each.

>>> from flambeau.func import vmap
>>> x = flambeau.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]])
>>> vmap(lambda row: row[row > 0])(x)
tensor([[1., 3.],
        [5., 6.]])
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.dtypes import bool_
from flambeau.core.op import table
from flambeau.core.tensor import Tensor, wrap
from flambeau.ops.coercion import values_below
from flambeau.ops.factory.ranges import arange
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_as_rows, batch_first, expand_to, movedim, unsqueeze


def call(name: str, *canonical: Any) -> Any:
    """An op of a module that needs this one, which comes with the method of its name."""
    if name not in table:
        getattr(Tensor, name)
    return table[name].call(*canonical)


def cut(found: Tensor, owner: Tensor, size: int) -> Tensor:
    """`found` as (size, count, …), where `owner` says, in ascending order, of which slice each
    row is."""
    shape = found._array.shape
    count = shape[0] // size if size else 0
    wanted = reshape(expand_to(unsqueeze(arange(size), 1), (size, count)), (size * count,))
    if wanted._array.shape[0] != shape[0] or not _true_in_all_slices(owner == wanted):
        raise _uneven_slices_error(owner, size)
    return reshape(found, (size, count, *shape[1:]))


def _true_in_all_slices(truth: Any) -> bool:
    """Of a slice of another level: in all slices?"""
    return bool(values_below(truth).all())


def _uneven_slices_error(owner: Any, size: int) -> RuntimeError:
    said = "stack expects each tensor to be equal size"
    if not hasattr(owner, "_value"):
        counts = np.bincount(owner._array, minlength=size)
        other = int(np.argmax(counts != counts[0]))
        said += f", but got [{counts[0]}] at entry 0 and [{counts[other]}] at entry {other}"
    return RuntimeError(said)


def places(truth: Tensor, size: int) -> Tensor:
    """Where `truth`, with slices in front, is not zero: (size, count, dimensions of a slice)."""
    found = call("nonzero", truth)
    return cut(found[:, 1:], found[:, 0], size)


def nonzero_batched(size: int, dims: Any, self: Tensor) -> Any:
    return places(batch_first(self, dims[0], size), size), 0


def masked_select_batched(size: int, dims: Any, self: Tensor, mask: Tensor) -> Any:
    wide = np.broadcast_shapes(*[t._array.shape[d is not None:] if d in (None, 0) else
                                 t._array.shape[:d] + t._array.shape[d + 1:]
                                 for t, d in zip((self, mask), dims)])
    self, mask = (_expand_slices(t, d, size, wide) for t, d in zip((self, mask), dims))
    if dims[1] is None:                 # the same places in all slices
        at = reshape(call("nonzero", reshape(mask[0], (-1,))), (-1,))
        return call("index_select", batch_as_rows(self, 0, size), at, 1), 0
    return cut(call("masked_select", self, mask), call("nonzero", mask)[:, 0], size), 0


def _expand_slices(tensor: Tensor, dim: int | None, size: int, wide: tuple[int, ...]) -> Tensor:
    """Slices of that shape, in front."""
    front = batch_first(tensor, dim, size)
    own = front._array.shape
    fitted = reshape(front, (size, *(1,) * (len(wide) + 1 - len(own)), *own[1:]))
    return expand_to(fitted, (size, *wide))


def without_masks(size: int, dims: Any, tensors: tuple[Any, ...], where: tuple[int, ...],
                  first: int) -> Any:
    """The arguments of an index op, with the places that each mask (from the tensor `first` on)
    names instead of it."""
    kept, at, places_of = list(tensors[:first]), list(where[:0]), list(dims[:first])
    for index, d, begin in zip(tensors[first:], dims[first:], where):
        if index._array.dtype.kind != "b":
            kept.append(index), at.append(begin), places_of.append(d)
            continue
        found = call("nonzero", index) if d is None else places(batch_first(index, d, size), size)
        for i in range(found._array.shape[-1]):
            kept.append(found[..., i]), at.append(begin + i)
            places_of.append(None if d is None else 0)
    return places_of, tuple(kept), tuple(at)


def repeated_places_batched(size: int, dims: Any, repeats: Tensor, output_size: int | None) -> Any:
    rows = batch_first(repeats, dims[0], size)
    n = rows._array.shape[1]
    found = call("repeat_interleave.Tensor", reshape(rows, (size * n,)),
                 None if output_size is None else output_size * size)
    return cut(found % max(n, 1), found // max(n, 1), size), 0


def bincount_batched(size: int, dims: Any, self: Tensor, weights: Tensor | None,
                     minlength: int) -> Any:
    rows = batch_first(self, dims[0], size)
    if rows._array.ndim != 2 or not rows._array.size or hasattr(rows, "_value"):
        return NotImplemented           # which says what is wrong
    if rows._array.dtype.kind not in "ui" or rows._array.min() < 0 or minlength < 0:
        return NotImplemented
    lengths = np.maximum(rows._array.max(1) + 1, minlength)
    length = int(lengths[0])
    if (lengths != length).any():
        raise _uneven_slices_error(call("repeat_interleave.Tensor", wrap(lengths.astype(np.int64)),
                                        None), size)
    flat = reshape(rows + unsqueeze(arange(size), 1) * length, (-1,))
    if weights is not None:
        weights = reshape(batch_first(weights, dims[1], size), (-1,))
        if weights._array.shape != flat._array.shape:
            return NotImplemented
    found = call("bincount", flat, weights, size * length)
    return reshape(found, (size, length)), 0


def distinct_batched(size: int, rows: Tensor, shape: tuple[int, ...], in_order: bool,
                     inverse: bool, counts: bool) -> list[Tensor]:
    """Of each row the distinct elements, or with `in_order` its runs; the place of each element
    among them, in slices of that `shape`; how often each occurs."""
    n, order = rows._array.shape[1], None
    if not in_order:
        rows, order = rows.sort(1)
    first = rows.new_ones((size, min(n, 1)), dtype=bool_)
    is_first = call("cat", (first, rows[:, 1:] != rows[:, :-1]), 1) if n else first
    number = is_first.cumsum(1) - 1
    values = cut(call("masked_select", rows, is_first), call("nonzero", is_first)[:, 0], size)
    none = number.new_empty((size, 0))
    places_of = none
    if inverse:
        places_of = number if order is None else number.scatter(1, order, number)
        places_of = reshape(places_of, (size, *shape))
    often = none
    if counts:
        often = number.new_zeros(values._array.shape).scatter_add(1, number, number * 0 + 1)
    return [values, places_of, often]


def nonzero_static_batched(size: int, dims: Any, self: Tensor, most: int, fill_value: int) -> Any:
    """`nonzero_static`: in each slice, the k-th one is where the count of what is not zero
    reaches k."""
    front = batch_first(self, dims[0], size)
    shape, rows = front._array.shape[1:], batch_as_rows(self, dims[0], size)
    wanted = expand_to(arange(1, most + 1), (size, most))
    at = call("searchsorted", (rows != 0).cumsum(1), wanted, None, False, False, None)
    steps = [int(np.prod(shape[i + 1:])) for i in range(len(shape))]
    factors, extents = (wrap(np.array(v, np.int64)) for v in (np.maximum(steps, 1),
                                                              np.maximum(shape, 1)))
    column = reshape(at, (size, most, 1))
    found = column // factors % extents
    return found.masked_fill(column >= rows._array.shape[1], fill_value), 0


def distinct_slices_batched(size: int, dims: Any, self: Tensor, dim: int, in_order: bool) -> Any:
    """The distinct slices along `dim`, or with `in_order` their runs, of each of the batch: all of
    them are numbered in ascending order first, and then it is numbers that are told apart."""
    front = movedim(batch_first(self, dims[0], size), dim + 1, 1)
    _, extent, *rest = front._array.shape
    rows = reshape(front, (size * extent, int(np.prod(rest))))
    distinct, number, _ = call("unique_dim", rows, 0, True, True, False)
    numbers = reshape(number, (size, extent))
    found, inverse, counts = distinct_batched(size, numbers, (extent,), in_order, True, True)
    values = reshape(distinct[reshape(found, (-1,))], (size, found._array.shape[1], *rest))
    return [movedim(values, 1, dim + 1), inverse, counts], [0, 0, 0]
