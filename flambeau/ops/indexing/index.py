"""Reading and writing by index: `x[…]`, gather and scatter, and their kin.

`x[index]` is done as torch does it: integers, slices, None and `...` first, as one view; then all
index tensors at once, which copies.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.source_locations import native
from flambeau.core.calling import overrides
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.promotion import convert, type_name
from flambeau.core.tensor import Tensor, add_members, array_strides, plain_types, tensor_types
from flambeau.core.views import check_inplace, count_write
from flambeau.dispatch.declaration import AtenForm, op
from flambeau.kernels._extension import compiled
from flambeau.kernels.moving import indexing, views
from flambeau.kernels.refused import refuse
from flambeau.ops.factory.create import zeros
from flambeau.ops.factory.ranges import arange
from flambeau.ops.indexing.basic import _alias, _select, _slice, _unsqueeze, basic_view, take_first
from flambeau.ops.indexing.parsing import Tensor_of, _one_item, as_slot, is_whole, overriding, parse
from flambeau.ops.indexing.values import as_value, assign, without_ones
from flambeau.ops.overlap import check_overlap, share_memory, warn_of_expanded
from flambeau.ops.pointwise.conditional import fill
from flambeau.ops.view.copying import copy
from flambeau.ops.view.reshaping import reshape, view
from flambeau.ops.view.shape import batch_first, expand, movedim, unsqueeze


def _getitem(self: Tensor, key: Any, /) -> Tensor:
    """`x[index]`."""
    if asked := overriding(key, self):
        return overrides.ask_mode_and_types(Tensor.__getitem__, asked, (self, key), {}, False)
    try:
        if type(key) is int and self._array.ndim and (
                -self._array.shape[0] <= key < self._array.shape[0]):
            return take_first(self, key)
        return item_at(self, key)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None


def item_at(x: Tensor, key: Any) -> Tensor:
    """`x[key]`, of which no type is asked."""
    basic, advanced = parse(x, key)
    view = x if basic is None else basic_view(x, basic, type(key) is slice)
    return view if advanced is None else take_at(view, advanced)


# ---- index tensors: a copy -----------------------------------------------------------------------


def numpy_index(arrays: Any, where: tuple[int, ...], ndim: int) -> tuple[Any, ...]:
    """What NumPy indexes with: `arrays[i]` begins at dimension `where[i]`."""
    items: list[Any] = []
    for array, at in zip(arrays, where):
        items += [slice(None)] * (at - _covered(items))
        items.append(array)
    return tuple(items)


def _covered(items: list[Any]) -> int:
    return sum(i.ndim if isinstance(i, np.ndarray) and i.dtype.kind == "b" else 1 for i in items)


_FIRST = tuple(range(64))


@compiled("index")
def _index_kernel(arrays: list[np.ndarray], where: tuple[int, ...]) -> np.ndarray:
    self, *indices = arrays
    in_front = self.flags.c_contiguous and where == _FIRST[:len(where)]
    # one mask of all dimensions, or one list of places, has kernels of its own
    if len(indices) == 1 and not (in_front and indices[0].ndim != (
            self.ndim if indices[0].dtype.kind == "b" else 1)):
        found = _take_one(self, indices[0], where[0])
        if found is not None:
            return found
    try:
        result = self[numpy_index(indices, where, self.ndim)]
    except IndexError as error:
        shape = shape_of_taken(self, indices, where)
        if 0 not in shape:
            raise _out_of_bounds(self, indices, where, error) from None
        return np.empty(shape, self.dtype)      # no place is looked at
    if result.ndim < 2 or (in_front and all(i.flags.c_contiguous for i in indices)):
        return result
    return views.arranged(result, _order_of_taken(self, indices, where, result.shape))


def _take_one(self: np.ndarray, index: np.ndarray, at: int) -> np.ndarray | None:
    """Slices along one dimension, or along those that a mask covers; None where the general way
    is to do it, or to say what is wrong."""
    shape = index.shape
    if index.dtype.kind == "b":
        after = at + index.ndim
        if shape != self.shape[at:after]:
            return None
        if shape == self.shape:
            return indexing.masked(self, index)
        merged = views.reshape(self, (*self.shape[:at], index.size, *self.shape[after:]))
        index = np.flatnonzero(index)
        shape = index.shape
    else:
        merged = self
        if index.ndim != 1:
            if not index.flags.c_contiguous:
                return None
            index = index.reshape(-1)
        if index.size and index.min() < 0:
            index = np.where(index < 0, index + self.shape[at], index)
    if merged is None:
        return None
    order = None
    if not merged.flags.c_contiguous:
        extents = (*merged.shape[:at], len(index), *merged.shape[at + 1:])
        order = _order_of_taken(merged, [index], [at], extents)
        merged, at = merged.transpose(order), order.index(at)
    try:
        result = indexing.index_select(merged, at, index)
    except (IndexError, RuntimeError):
        return None
    if order is not None:
        result, at = views.in_order(result, order), order[at]
    return result if len(shape) == 1 else result.reshape(
        *result.shape[:at], *shape, *result.shape[at + 1:])


def _order_of_taken(self: np.ndarray, indices: Any, where: Any, shape: Any) -> list[int]:
    """The order of the result's dimensions in memory: that of the operands, to which `self` is one
    that is expanded in the dimensions of the indices."""
    covered = [at + i for index, at in zip(indices, where)
               for i in range(index.ndim if index.dtype.kind == "b" else 1)]
    kept = [d for d in range(self.ndim) if d not in covered]
    taken = len(shape) - len(kept)
    before = where[0] if covered[-1] - covered[0] + 1 == len(covered) else 0
    steps = array_strides(self)
    own = [steps[d] for d in kept]
    operands = [[*own[:before], *[0] * taken, *own[before:]]]
    for index in indices:
        mask = index.dtype.kind == "b"          # stands for one list of places a dimension
        extents = shape[before:before + 1] if mask else index.shape
        strides = (index.ndim,) if mask else array_strides(index)
        front = before + taken - len(extents)
        first, last = (extents[0] * strides[0], strides[-1]) if extents else (1, 1)
        wide = [first] * front + [*strides] + [last] * (len(kept) - before)
        fits = (1,) * front + tuple(extents) + (1,) * (len(kept) - before)
        operands.append([s if n == own else 0 for n, own, s in zip(fits, shape, wide)])
    return views.broadcast_memory_order(shape, *operands)


def shape_of_taken(self: np.ndarray, indices: Any, where: Any) -> tuple[int, ...]:
    """The shape of what indices name; raises if they do not fit the tensor or each other."""
    shape, extents, covered = self.shape, [], []
    for index, at in zip(indices, where):
        if index.dtype.kind != "b":
            extents.append(index.shape)
            covered.append(at)
            continue
        for i, (n, own) in enumerate(zip(index.shape, shape[at:])):
            if n != own:
                raise IndexError(f"The shape of the mask {list(index.shape)} at index {i} does "
                                 f"not match the shape of the indexed tensor {list(shape)} at "
                                 f"index {at + i}")
        extents += [(int(np.count_nonzero(index)),)] * index.ndim
        covered += range(at, at + index.ndim)
    try:
        taken = np.broadcast_shapes(*extents)
    except ValueError:
        raise IndexError("shape mismatch: indexing tensors could not be broadcast together with "
                         f"shapes {', '.join(str(list(e)) for e in extents)}") from None
    if any(not shape[at] and 0 not in extent for at, extent in zip(covered, extents)):
        raise IndexError("index is out of bounds for dimension with size 0")
    before = covered[0] if covered[-1] - covered[0] + 1 == len(covered) else 0
    kept = [n for d, n in enumerate(shape) if d not in covered]
    return (*kept[:before], *taken, *kept[before:])


def _out_of_bounds(self: np.ndarray, indices: Any, where: Any, error: Exception) -> Exception:
    ordinal = 0                         # among the indices, where a mask is one for each dimension
    for index, at in zip(indices, where):
        if index.dtype.kind == "b":
            ordinal += index.ndim
            continue
        if index.size and (index.max() >= self.shape[at] or index.min() < -self.shape[at]):
            wrong = indexing.outside(index, self.shape[at])[0]
            return IndexError(f"index {wrong} is out of bounds for dimension {ordinal} with size "
                              f"{self.shape[at]}")
        ordinal += 1
    return error


def _index_batched(size: int, dims: Any, tensors: tuple[Any, ...], where: tuple[int, ...]) -> Any:
    """Slices in front of the tensor; if an index differs between slices, one more index counts
    them."""
    if any(i._array.dtype.kind == "b" for i in tensors[1:]):
        from flambeau.ops.indexing.counted_slices import without_masks

        dims, tensors, where = without_masks(size, dims, tensors, where, 1)
    self, *indices = tensors
    bself = dims[0]
    if bself is not None:
        self = movedim(self, bself, 0)
    if all(d is None for d in dims[1:]):
        result = take_many((self, *indices), tuple([w + 1 for w in where]))
        front = len(where) == 1 or all(b - a == 1 for a, b in zip(where, where[1:]))
        return result, 0 if front else max(i._array.ndim for i in indices)
    rank = max(i._array.ndim - (d is not None) for i, d in zip(indices, dims[1:]))
    fitted = []
    for index, d in zip(indices, dims[1:]):
        if d is not None:
            index = _ranked(movedim(index, d, 0), rank)
        fitted.append(index)
    adjacent = all(b - a == 1 for a, b in zip(where, where[1:]))
    if bself is None:
        result = take_many((self, *fitted), where)
        return result, (where[0] if adjacent else 0)
    counter = reshape(arange(size), (size, *(1,) * rank))
    result = take_many((self, counter, *fitted), (0, *[w + 1 for w in where]))
    if where[0] == 0 and adjacent:
        return result, 0
    if adjacent:
        # NumPy put the indexed dimensions in front: (size, *index, *before, *after)
        spots = tuple(range(1, rank + 1))
        return movedim(result, spots, tuple([s + where[0] for s in spots])), 0
    return result, 0


def _spread(tensors: Any, where: Any) -> list[Any]:
    """One index, or None, for each dimension."""
    found: list[Any] = []
    for index, at in zip(tensors, where):
        found += [None] * (at - len(found)) + [index]
    return found


take_many = op(
    "index(Tensor[] tensors, int[] where) -> Tensor", kernel=_index_kernel, kind="linear",
    function=False, method=False, nondiff="tensors_from1", batch=_index_batched,
    unsized=lambda tensors, where: any(t.is_meta and t._array.dtype.kind == "b"
                                       for t in tensors[1:]),
    vjp=lambda grad, tensors_from1, tensors_shapes, where: [
        put_at(new_zeros(grad, tensors_shapes[0]), tensors_from1, where, grad, True),
        *[None] * len(tensors_from1)],
    jvp=lambda tensors, tensors_t, where: take_many((tensors_t[0], *tensors[1:]), where),
    aten=(AtenForm("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                   lambda tensors, where: (tensors[0], _spread(tensors[1:], where)),
                   run=lambda self, indices: self[tuple([slice(None) if i is None else i
                                                         for i in indices])]),),
    saved_as={"indices": lambda tensors_from1, where: tuple([
                  tensors_from1[where.index(i)] if i in where else None
                  for i in range(where[-1] + 1)]),
              "self_sym_sizes": lambda tensors_shapes: tuple(tensors_shapes[0])},
    doc="The elements of the first tensor that the others index.")


def take_at(self: Tensor, advanced: list[Any]) -> Tensor:
    where = tuple([i for i, t in enumerate(advanced) if isinstance(t, Tensor)])
    return take_many.op.call((self, *[advanced[i] for i in where]), where)


def _index_put_kernel(arrays: list[np.ndarray], where: tuple[int, ...],
                      accumulate: bool) -> np.ndarray:
    """The copy that is written to lies in memory as the tensor does."""
    self, values, *indices = arrays
    if self.flags.c_contiguous:
        return _put(arrays, where, accumulate)
    refuse(self, "U", "index_put")
    return _put_into(self.copy(order="K"), values, indices, where, accumulate)


@compiled("index_put")
def _put(arrays: list[np.ndarray], where: tuple[int, ...], accumulate: bool) -> np.ndarray:
    self, values, *indices = arrays
    refuse(self, "U", "index_put")
    return _put_into(self.copy(), values, indices, where, accumulate)


def _put_into(target: np.ndarray, values: np.ndarray, indices: Any, where: Any,
              accumulate: bool) -> np.ndarray:
    index = numpy_index(indices, where, target.ndim)
    values = convert(values, target.dtype)
    try:
        if accumulate:
            return indexing.index_put_(target, index, values, True)
        target[index] = values
    except (IndexError, ValueError, TypeError) as error:
        if 0 not in check_put(target, values, indices, where):  # else no place is looked at
            raise _out_of_bounds(target, indices, where, error) from None
    return target


def check_put(target: np.ndarray, values: np.ndarray, indices: Any, where: Any) -> Any:
    """The shape of what indices name; raises if they do not fit, or values do not fit that."""
    found = shape_of_taken(target, indices, where) if where else target.shape
    lack = len(found) - values.ndim
    if lack < 0 or any(n != 1 and n != own for n, own in zip(values.shape, found[lack:])):
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be "
                           f"broadcast to indexing result of shape {list(found)}")
    return found


def _index_put_vjp(grad: Any, needs: Any, tensors_from2: Any, where: Any,
                   accumulate: bool) -> list[Any]:
    to_self = to_values = None
    if needs[0]:
        to_self = grad if accumulate else put_at(
            grad, tensors_from2, where, new_zeros(grad, ()), False)
    if needs[1]:
        to_values = take_many((grad, *tensors_from2), where)
    return [to_self, to_values, *[None] * len(tensors_from2)]


def _index_put_batched(size: int, dims: Any, tensors: tuple[Any, ...], where: tuple[int, ...],
                       accumulate: bool) -> Any:
    """One more index, that counts the examples, in front."""
    if any(i._array.dtype.kind == "b" for i in tensors[2:]):
        from flambeau.ops.indexing.counted_slices import without_masks

        dims, tensors, where = without_masks(size, dims, tensors, where, 2)
    self, values, *indices = tensors
    self = batch_first(self, dims[0], size)
    rank = max(i._array.ndim - (d is not None) for i, d in zip(indices, dims[2:]))
    fitted = [i if d is None else _ranked(movedim(i, d, 0), rank)
              for i, d in zip(indices, dims[2:])]
    counter = reshape(arange(size), (size, *(1,) * rank))
    values = unsqueeze(values, 0) if dims[1] is None else movedim(values, dims[1], 0)
    values = _ranked(values, rank + self._array.ndim - 1 - len(where))
    adjacent = all(b - a == 1 for a, b in zip(where, where[1:]))
    if adjacent and where[0]:
        # NumPy wants the indexed dimensions in front: (size, *index, *before, *after)
        spots = tuple(range(1, rank + 1))
        values = movedim(values, tuple([s + where[0] for s in spots]), spots)
    return put_many((self, values, counter, *fitted), (0, *[w + 1 for w in where]),
                    accumulate), 0


def _ranked(tensor: Tensor, rank: int) -> Tensor:
    """Examples in front of `rank` dimensions, as many of them of 1 as are missing."""
    shape = tensor._array.shape
    return reshape(tensor, (shape[0], *(1,) * (rank + 1 - len(shape)), *shape[1:]))


put_many = op(
    "index_put_many(Tensor[] tensors, int[] where, bool accumulate) -> Tensor",
    kernel=_index_put_kernel,
    kind="linear", function=False, method=False, node="IndexPutBackward0", batch=_index_put_batched,
    vjp=_index_put_vjp, nondiff="tensors_from2", overlap="index",
    jvp=lambda tensors, tensors_t, where, accumulate: put_many(
        (tensors_t[0], tensors_t[1], *tensors[2:]), where, accumulate),
    aten=(AtenForm("index_put(Tensor self, Tensor?[] indices, Tensor values, "
                   "bool accumulate=False) -> Tensor", lambda tensors, where, accumulate: (
                       tensors[0], _spread(tensors[2:], where), tensors[1], accumulate)),),
    doc="The first tensor with the second where the others index; `accumulate` adds there.")


def put_at(self: Tensor, indices: Any, where: Any, values: Tensor, accumulate: bool) -> Tensor:
    return put_many.op.call((self, values, *indices), where, accumulate)


def _check_values(input: Tensor, values: Tensor, indices: list[Tensor],
                  where: tuple[int, ...]) -> None:
    """Raise if values are of another type, or do not fit, which comes first."""
    if (values._array.ndim > input._array.ndim or values._array.dtype != input._array.dtype
            ) and not any(i.is_meta for i in indices):
        check_put(input._array, values._array, [i._array for i in indices], where)
    if values._array.dtype != input._array.dtype:
        raise RuntimeError("Index put requires the source and destination dtypes match, got "
                           f"{type_name(input.dtype)} for the destination and "
                           f"{type_name(values.dtype)} for the source.")


@op("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    inplace=True, inplace_function=True, out=False, overlap="index anywhere", explicit=True)
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool) -> Tensor:
    """`input` with `values` at `indices` (a tuple of index tensors, one a dimension).

    With `accumulate`, values are added, and those for one place add up.
    """
    advanced = [None if i is None else _normal_tensor(i) for i in indices]
    if len(advanced) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim} (got "
                         f"{len(advanced)})")
    where, at = [], 0
    for item in advanced:
        if item is not None:
            where.append(at)
        at += item._array.ndim if item is not None and item._array.dtype.kind == "b" else 1
    named = [i for i in advanced if i is not None]
    if not accumulate and values._array.size == 1 and _is_mask(named):
        values = _filling(input, values, named, tuple(where), indices)
    else:
        _check_values(input, values, named, tuple(where))
    return put_at(input, named, tuple(where), values, accumulate)


_index_put = index_put.op


def _normal_tensor(item: Any) -> Tensor:
    found = _one_item(item)
    return Tensor_of(np.array(found)) if isinstance(found, int) else found


def _setitem(self: Tensor, key: Any, value: Any, /) -> None:
    """`x[index] = value`."""
    if asked := overriding(key, self, value):
        overrides.ask_mode_and_types(Tensor.__setitem__, asked, (self, key, value), {}, False)
        return
    value = as_value(value, self)
    if type(key) is bool:
        if key:
            assign(unsqueeze(self, 0), value)
        return
    basic, advanced = parse(self, key)
    view = self if basic is None or _keeps_all(basic, self._array.shape) \
        else basic_view(self, basic)
    if advanced is None:
        assign(view, value)
        return
    recorded = grad_enabled() and (view.requires_grad or value.requires_grad)
    check_inplace(view, recorded, apart=False)
    where = tuple([i for i, t in enumerate(advanced) if isinstance(t, Tensor)])
    indices = [advanced[i] for i in where]
    value = without_ones(value)
    if value._array.size == 1 and _is_mask(indices):
        value = _filling(view, value, indices, where,
                         key if isinstance(key, tuple) else (key,))
    else:
        memory = view._array
        if any(t._array is memory or share_memory(memory, t._array) for t in (value, *indices)):
            check_overlap(_index_put, view, (value, *indices))
        _check_values(view, value, indices, where)
    if not recorded and not interceptors and all(type(t) in plain_types
                                                 for t in (view, value, *indices)):
        if views.has_internal_overlap(view._array):
            warn_of_expanded("index_put")
        _put_into(view._array, value._array, [i._array for i in indices], where, False)
        count_write(view)
        return
    view.index_put_(_spread(indices, where), value)


def _is_mask(indices: list[Tensor]) -> bool:
    return len(indices) == 1 and indices[0]._array.dtype.kind == "b"


def _filling(view: Tensor, value: Tensor, indices: list[Tensor], where: tuple[int, ...],
             given: Any) -> Tensor:
    """One value where a mask says: as `masked_fill` takes it."""
    if any(isinstance(i, Tensor) and i._array.dtype == np.uint8 for i in given):
        shape_of_taken(view._array, [i._array for i in indices], where)
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           "unsigned char")
    own = view._array.dtype
    return value if value._array.dtype == own else value.to(view.dtype)


def _keeps_all(basic: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Does the basic part of an index change nothing?"""
    return None not in basic and len(basic) == len(shape) + 1 and all(
        type(item) is slice and is_whole(item, n) for item, n in zip(basic, shape))


def delitem(self: Tensor, key: Any, /) -> None:
    """Raises: tensors keep their elements."""
    raise TypeError("Tensor does not support deleting items")


def _ops_of_assignment() -> tuple[Any, ...]:
    """What `assign` calls, for its form in C; modules that build on this one have them."""
    by_tensor = fill.twin.declaration.inplace_ops[-1].functional
    return tuple([op.call for op in (copy.op, by_tensor, view.op, expand.op)])


for _name, _function in (("__getitem__", _getitem), ("__setitem__", _setitem)):
    _function.__name__ = _function.__qualname__ = _name
    vars(_function)["is_member"] = True     # modes and subclasses see it as they see a property
getitem, setitem = as_slot(_getitem), as_slot(_setitem)
if native is not None:                      # C does it for plain tensors without a history
    getitem, setitem = native.make_indexing(
        getitem, setitem, take_first, _select, _slice, _unsqueeze, _alias, take_many.op.call,
        put_many.op.call, _ops_of_assignment)
add_members(__getitem__=getitem, __setitem__=setitem, __delitem__=delitem)


def new_zeros(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    if interceptors or type(like) not in plain_types:
        return like.new_zeros(shape)
    return zeros(shape, dtype=like.dtype, device=like._device)


__all__ = ["getitem", "setitem", "tensor_types"]
