"""Reading and writing whole slices by index, elements of the flattened tensor, and by masks."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core.dtypes import bool_, int64
from flambeau.core.graph import next_order
from flambeau.core.op import composite, primitive
from flambeau.core.promotion import type_name
from flambeau.core.shapes import broadcast_shapes, wrap_dim
from flambeau.core.tensor import Tensor, basis
from flambeau.dispatch.declaration import op
from flambeau.kernels import indexing
from flambeau.kernels._extension import compiled
from flambeau.kernels.refused import refuse
from flambeau.ops.indexing.gather import (
    gather,
    reduce_gradients,
    scatter_add,
    scatter_reduce,
    scatter_src,
    scatter_value,
)
from flambeau.ops.indexing.index import getitem, index_put, new_zeros, take_many
from flambeau.ops.node_names import one_node, rename
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import movedim

# ---- by slices -----------------------------------------------------------------------------------


def _check_combined(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> int:
    """Raise unless the slices of `source` can be combined with those of `input`; `dim`, from 0."""
    kind = type_name(index.dtype)
    if index._array.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got dim: "
                         f"{index._array.ndim} with type: {kind} and size: {list(index.shape)}")
    if kind not in ("Int", "Long"):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {kind}")
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(f"{name}(): self ({type_name(input.dtype)}) and source "
                           f"({type_name(source.dtype)}) must have the same scalar type")
    dim = wrap_dim(dim, input._array.ndim)
    a, b = input._array.shape, source._array.shape
    n, found = index._array.size, b[dim] if dim < len(b) else 1
    if found != n:
        raise RuntimeError(f"{name}(): Number of indices ({n}) should be equal to "
                           f"source.size(dim): ({found}), for dim: {dim}")
    if a[:dim] + a[dim + 1:] != b[:dim] + b[dim + 1:] or (not a and source._array.size != 1):
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the "
                           f"specified dimension. Got self.shape = {list(a)} source.shape = "
                           f"{list(b)}")
    return dim


def _index_select(self: np.ndarray, index: np.ndarray, dim: int) -> np.ndarray:
    if not self.ndim:
        return self.copy()
    return indexing.index_select(self, dim, index.reshape(-1))


def _select_batched(size: int, dims: Any, self: Tensor, index: Tensor, dim: int) -> Any:
    if self._array.ndim == (dims[0] is not None):           # of numbers: their one slice
        return (self, dims[0]) if dims[0] is not None else (
            basis.expand(self, (size,)), 0)
    if dims[1] is None:
        return index_select(movedim(self, dims[0], 0), dim + 1, index), 0
    index = movedim(index, dims[1], 0)
    if dims[0] is None:
        flat = index_select(self, dim, reshape(index, (-1,)))
        shape = flat._array.shape
        split = reshape(flat, (*shape[:dim], *index._array.shape, *shape[dim + 1:]))
        return split, dim
    self = movedim(self, dims[0], 0)
    return gather(self, dim + 1, _along(index, self._array.shape, dim + 1)), 0


def _along(index: Tensor, shape: tuple[int, ...], dim: int) -> Tensor:
    """One vector of indices for each example, (n, k), as the index of every element of slices
    along `dim`: like `shape`, with k there."""
    n, k = index._array.shape if index._array.ndim == 2 else (index._array.shape[0], 1)
    spread = reshape(index, (n, *(1,) * (dim - 1), k, *(1,) * (len(shape) - dim - 1)))
    return basis.expand(spread, (n, *shape[1:dim], k, *shape[dim + 1:]))


def _in_front(size: int, dims: Any, *tensors: Tensor) -> list[Tensor]:
    """The tensors with the examples in front, those of numbers as vectors of one element."""
    found = []
    for tensor, at in zip(tensors, dims):
        whole = basis.expand(tensor, (size, *tensor._array.shape)) if at is None \
            else movedim(tensor, at, 0)
        found.append(whole if whole._array.ndim > 1 else reshape(whole, (size, 1)))
    return found


def _back(result: Tensor, self: Tensor, at: int | None) -> tuple[Tensor, int]:
    """`result` in the shape of `self`, which a number was made a vector for."""
    number = self._array.ndim == (at is not None)
    return (reshape(result, (-1,)) if number else result), 0


def _selection(input: Tensor, index: Tensor, dim: int) -> tuple[Tensor, Tensor, int]:
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index._array.dtype.kind != "i" or index._array.dtype.itemsize < 4:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    return input, index, wrap_dim(dim, input._array.ndim)


index_select = op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    kernel=_index_select, kind="linear", canonical=_selection, batch=_select_batched,
    d_self=lambda grad, self_shape, index, dim: index_add(
        new_zeros(grad, self_shape), dim, index, grad),
    doc="The slices of `input` along `dim` that the vector `index` names.")


@compiled("index_add")
def _add_kernel(self: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int,
                alpha: Any) -> np.ndarray:
    if not self.ndim:
        return indexing.index_add(self.reshape(1), 0, index.reshape(-1), source.reshape(1),
                                  alpha).reshape(())
    return indexing.index_add(self, dim, index.reshape(-1), source, alpha)


def _add_batched(size: int, dims: Any, self: Tensor, index: Tensor, source: Tensor, dim: int,
                 alpha: Any) -> Any:
    wide, places, values = _in_front(size, dims, self, index, source)
    if dims[1] is None:
        return _back(index_add(wide, dim + 1, reshape(index, (-1,)), values, alpha=alpha), self,
                     dims[0])
    places = _along(places, values._array.shape, dim + 1)
    return _back(scatter_add(wide, dim + 1, places, values if type(alpha) is int and alpha == 1
                             else values * alpha), self, dims[0])


def _addition(input: Tensor, index: Tensor, source: Tensor, dim: int,
              alpha: Any) -> tuple[Any, ...]:
    return input, index, source, _check_combined("index_add_", input, dim, index, source), alpha


index_add = op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    kernel=_add_kernel, kind="linear", dims="dim", canonical=_addition, kernel_checks=True,
    inplace=True, batch=_add_batched, d_self=lambda grad: grad,
    d_source=lambda grad, index, dim, alpha: index_select(grad, dim, index) * alpha,
    doc="`input` with alpha · slices of `source` added to the slices that `index` names.")


def _copy_kernel(self: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int) -> np.ndarray:
    if not self.ndim:
        return source.reshape(()).copy()
    return indexing.index_copy(self, dim, index.reshape(-1), source)


def _copy_batched(size: int, dims: Any, self: Tensor, index: Tensor, source: Tensor,
                  dim: int) -> Any:
    wide, places, values = _in_front(size, dims, self, index, source)
    if dims[1] is None:
        return _back(index_copy(wide, dim + 1, reshape(index, (-1,)), values), self, dims[0])
    places = _along(places, values._array.shape, dim + 1)
    return _back(scatter_src(wide, places, values, dim + 1), self, dims[0])


def _replacement(input: Tensor, index: Tensor, source: Tensor, dim: int) -> tuple[Any, ...]:
    dim, name = wrap_dim(dim, input._array.ndim), "index_copy_():"
    if index._array.ndim > 1:
        raise IndexError(f"{name} Index should have dimension 1 or 0 (got {index._array.ndim})")
    n, a, b = index._array.size, input._array.shape, source._array.shape
    if not b and n != 1:
        raise IndexError(f"{name} When source is scalar, index should have one element (got {n})")
    if a and b and len(a) != len(b):
        raise IndexError(f"{name} When source and destination are not scalars, their "
                         f"dimensionality must match. Source dimensionality ({len(b)}), "
                         f"destination dimensionality ({len(a)})")
    if index.dtype is not int64:
        raise RuntimeError(f"{name} Expected a long tensor for index, but got "
                           f"{type_name(index.dtype)}")
    if source._array.dtype != input._array.dtype:
        raise RuntimeError(f"{name} self and source expected to have the same dtype, but "
                           f"got (self) {type_name(input.dtype)} and (source) "
                           f"{type_name(source.dtype)}")
    if a[:dim] + a[dim + 1:] != b[:dim] + b[dim + 1:]:
        raise RuntimeError(f"{name} Source/destination tensor must have same slice shapes. "
                           f"Destination slice shape: {' '.join(map(str, a[:dim] + a[dim + 1:]))} "
                           f"at dimension {dim} and source slice shape: "
                           f"{' '.join(map(str, b[:dim] + b[dim + 1:]))} at dimension 0.")
    if b and b[dim] != n:
        raise IndexError(f"{name} Number of indices ({n}) should be equal to source.size(dim) "
                         f"({b[dim]})")
    return input, index, source, dim


index_copy = op(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    kernel=_copy_kernel, kind="linear", canonical=_replacement, inplace=True, batch=_copy_batched,
    d_self=lambda grad, index, dim: index_fill(grad, dim, index, 0),
    d_source=lambda grad, index, source_shape, dim: index_select(grad, dim, index).expand(
        source_shape),
    doc="`input` with the slices that `index` names replaced by those of `source`.")


def _fill_kernel(self: np.ndarray, index: np.ndarray, dim: int, value: Any) -> np.ndarray:
    r = self.copy()
    if not r.ndim:
        r[...] = value
    else:
        size = r.shape[dim]
        wrong = indexing.outside(index, size)
        if wrong.size:
            raise IndexError(f"index {wrong[0]} is out of bounds for dimension {dim} with size "
                             f"{size}")
        r[(slice(None),) * dim + (index,)] = value
    return r


def _fill_batched(size: int, dims: Any, self: Tensor, index: Tensor, dim: int, value: Any) -> Any:
    wide, places = _in_front(size, dims, self, index)
    if dims[1] is None:
        return _back(fill_slices(wide, reshape(index, (-1,)), dim + 1, value), self, dims[0])
    places = _along(places, wide._array.shape, dim + 1)
    return _back(scatter_value(wide, places, value, dim + 1), self, dims[0])


@primitive(_fill_kernel, tensors=("self", "index"), method=False, namespace=None,
           batch=_fill_batched,
           node_name="IndexFillBackward0",
           d_self=lambda grad, index, dim: fill_slices(grad, index, dim, 0),
           jvp=lambda self_t, index, dim: fill_slices(self_t, index, dim, 0))
def fill_slices(input: Tensor, index: Tensor, dim: int, value: Any) -> Any:
    return input, index, dim, value


@composite(method=True, inplace=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`input` with the slices that `index` names filled with `value`."""
    if index.dtype is not int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index._array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    dim = wrap_dim(dim, input._array.ndim)
    refuse(input._array, "U8", "index_fill_cpu")
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got "
                               f"tensor with {value._array.ndim} dimension(s).")
        shape = [1] * max(input._array.ndim, 1)
        shape[dim] = input._array.shape[dim] if input._array.ndim else 1
        chosen = fill_slices(basis.new_zeros(input, (shape[dim],)).to(bool_), index, 0, True)
        chosen = reshape(chosen, shape if input._array.ndim else ())
        since = next_order()
        result = basis.where(chosen, value.to(input.dtype), input)
        rename(result, "IndexFillBackward1", since)
        return result
    if isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not "
                           "supported")
    return fill_slices(input, index, dim, value)


# ---- flat, masked --------------------------------------------------------------------------------


def _flat(size: int, dims: Any, self: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The examples as rows, and the places in them, counted from the front."""
    rows, places = (basis.rows(t, d, size) for t, d in zip((self, index), dims))
    return rows, basis.where(places < 0, places + rows._array.shape[1], places)


def _take_batched(size: int, dims: Any, self: Tensor, index: Tensor) -> Any:
    if dims[0] is None:
        return take(self, index), dims[1]
    rows, places = _flat(size, dims, self, index)
    shape = index._array.shape if dims[1] is None else movedim(index, dims[1], 0)._array.shape[1:]
    return reshape(gather(rows, 1, places), (size, *shape)), 0


def _taken(input: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    if index._array.dtype != np.int64:
        raise RuntimeError("take(): Expected a long tensor for index, but got "
                           f"{type_name(index.dtype)}")
    return input, index


take = op(
    "take(Tensor self, Tensor index) -> Tensor",
    kernel=compiled("take")(indexing.take), kind="linear", canonical=_taken, kernel_checks=True,
    batch=_take_batched,
    d_self=lambda grad, self_shape, index: put(new_zeros(grad, self_shape), index, grad, True),
    doc="The elements of the flattened `input` at `index`.")


@compiled("put")
def _put_flat(self: np.ndarray, index: np.ndarray, source: np.ndarray,
              accumulate: bool) -> np.ndarray:
    r = np.array(self, order="C")
    wrong = indexing.outside(index, r.size)
    if wrong.size:
        raise IndexError(f"out of range: tried to access index {wrong[0]} on a tensor of {r.size} "
                         "elements.")
    indexing.index_put_(r.reshape(-1), (index.reshape(-1),), source.reshape(-1), accumulate)
    return r


def _put_batched(size: int, dims: Any, self: Tensor, index: Tensor, source: Tensor,
                 accumulate: bool) -> Any:
    rows, places = _flat(size, dims, self, index)
    values = basis.rows(source, dims[2], size)
    write = scatter_add(rows, 1, places, values) if accumulate \
        else scatter_src(rows, places, values, 1)
    return reshape(write, _in_front(size, dims, self)[0]._array.shape
                   if self._array.ndim != (dims[0] is not None) else (size,)), 0


def _puts(input: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> tuple[Any, ...]:
    if input.dtype is not source.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got "
                           f"self.dtype = {type_name(input.dtype)} and source.dtype = "
                           f"{type_name(source.dtype)}")
    if index.dtype is not int64:
        raise RuntimeError("put_(): Expected a long tensor for index, but got "
                           f"{type_name(index.dtype)}")
    if index._array.size != source._array.size:
        raise IndexError("put_(): Expected source and index to have the same number of elements, "
                           f"but got source.numel() = {source._array.size}, index.numel() = "
                           f"{index._array.size}")
    return input, index, source, accumulate


put = op(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    kernel=_put_flat, kind="linear", canonical=_puts, kernel_checks=True, inplace=True, out=False,
    batch=_put_batched,
    d_self=lambda grad, index, accumulate: grad if accumulate else put(
        grad, index, new_zeros(grad, index._array.shape), False),
    d_source=lambda grad, index, source_shape: reshape(take(grad, index), source_shape),
    doc="`input` with `source` at places of the flattened tensor; `accumulate` adds.")


@composite(method=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *,
                   out: Any = None) -> Tensor:
    """`gather` with broadcasting of the other dimensions; of the flattened tensor without `dim`."""
    if indices.dtype is not int64:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{type_name(indices.dtype)}")
    if dim is None:
        result = gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)))
    else:
        if input.ndim != indices.ndim:
            raise RuntimeError("torch.take_along_dim(): input and indices should have the same "
                               f"number of dimensions, but got {input.ndim} dimensions for input, "
                               f"and {indices.ndim} dimensions for indices")
        dim = wrap_dim(dim, input.ndim)
        a, b = list(input._array.shape), list(indices._array.shape)
        if a:
            n, a[dim] = a[dim], 1
            k, b[dim] = b[dim], 1
            a = list(broadcast_shapes(tuple(a), tuple(b)))
            b = a[:]
            a[dim], b[dim] = n, k
            indices = indices % n if n else indices
        result = gather(input.expand(a), dim, indices.expand(b))
    return result if out is None else basis.into(out, take_along_dim.op, result, (input, indices))


@composite(method=True)
@one_node
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    """The elements of `input` where `mask` is True, as a vector; the two broadcast."""
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    refuse(input._array, "U", "masked_select")
    shape = broadcast_shapes(mask._array.shape, input._array.shape)
    if not shape:
        result = getitem(reshape(input, (1,)), reshape(mask, (1,)))
    else:
        result = take_many((input.expand(shape), mask.expand(shape)), (0,))
    return result if out is None else basis.into(out, masked_select.op, result, (input, mask))


@compiled("masked_scatter")
def _masked_scatter(self: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    r = np.array(np.broadcast_to(self, np.broadcast_shapes(self.shape, mask.shape)), order="C")
    mask = np.broadcast_to(mask, r.shape)
    count = int(mask.sum())
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    r[mask] = source.reshape(-1)[:count]
    return r


def _masked_scatter_batched(size: int, dims: Any, self: Tensor, mask: Tensor,
                            source: Tensor) -> Any:
    """Each place takes the element of `source` that has as many chosen places before it."""
    rank = max(t._array.ndim - (d is not None) for t, d in zip((self, mask), dims))
    wide, chosen = (reshape(whole, (size, *(1,) * (rank + 1 - whole._array.ndim),
                                    *whole._array.shape[1:])) if rank else reshape(whole, (size,))
                    for whole in _in_front(size, dims, self, mask))
    shape = broadcast_shapes(wide._array.shape, chosen._array.shape)
    wide, chosen = basis.expand(wide, shape), basis.expand(chosen, shape)
    values = basis.rows(source, dims[2], size)
    rows = basis.rows(chosen, 0, size)
    places = (rows.cumsum(1) - 1).clamp(0, max(values._array.shape[1] - 1, 0))
    return basis.where(chosen, reshape(gather(values, 1, places), shape), wide), 0


def _masks(input: Tensor, mask: Tensor, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if mask._array.dtype.kind != "b":
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype "
                           f"{type_name(mask.dtype)}")
    if source._array.dtype != input._array.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got"
                           f"{type_name(input.dtype)} and {type_name(source.dtype)}")
    return input, mask, source


masked_scatter = op(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    kernel=_masked_scatter, kind="linear", canonical=_masks, kernel_checks=True, inplace=True,
    out=False, batch=_masked_scatter_batched,
    d_self=lambda grad, mask: grad.masked_fill(mask, 0),
    d_source=lambda grad, mask, source_shape: _masked_back(grad, mask, source_shape),
    doc="`input` with the elements where `mask` is True replaced by those of `source`, in order.")


def _masked_back(grad: Tensor, mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """What the elements of the source get: the one at place k, where `mask` holds for the k-th
    time."""
    size = prod(shape)
    if not size:
        return basis.new_zeros(grad, shape)
    mask = reshape(basis.expand(mask, grad._array.shape), (-1,))
    given = reshape(grad, (-1,)).masked_fill(~mask, 0)
    places = (mask.cumsum(0) - 1).clamp(0, size - 1)
    return reshape(basis.new_zeros(grad, (size,)).scatter_add(0, places, given), shape)


def _spread(index: Tensor, shape: tuple[int, ...], dim: int) -> Tensor:
    """A vector of places along `dim`, for each element of slices."""
    own = [1] * len(shape)
    if own:
        own[dim] = index._array.size
    return reshape(index, own).expand(shape)


def _reduction(input: Tensor, index: Tensor, source: Tensor, dim: int, reduce: str,
               include_self: bool) -> tuple[Any, ...]:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin "
                           f"but got {reduce}.")
    warn_once("index_reduce() is in beta and the API may change at any time.")
    dim = _check_combined("index_reduce_", input, dim, index, source)
    refuse(input._array, "bUcW8", "index_func_")
    return input, index, source, dim, reduce, include_self


@compiled("index_reduce")
def _reduce_slices(self: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int, reduce: str,
                   include_self: bool) -> np.ndarray:
    shape = [1] * source.ndim
    if shape:
        shape[dim] = index.size
    spread = np.broadcast_to(index.reshape(shape), source.shape)
    return indexing.scatter(self, dim, spread, source, reduce, include_self)


index_reduce = op(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
    "bool include_self=True) -> Tensor",
    kernel=_reduce_slices, canonical=_reduction, inplace=True, nondiff="index",
    vjp=lambda grad, self, index, source, result, dim, reduce, include_self, needs:
    reduce_gradients(grad, self, _spread(index, source._array.shape, dim), source, result, dim,
                     reduce, include_self, needs),
    batch=lambda size, dims, self, index, source, dim, reduce, include_self: _reduce_batched(
        size, dims, self, index, source, dim, reduce, include_self),
    doc="""`scatter_reduce` by whole slices: `index` is a vector; "prod", "mean", "amax" or
    "amin".""")


def _reduce_batched(size: int, dims: Any, self: Tensor, index: Tensor, source: Tensor, dim: int,
                    reduce: str, include_self: bool) -> Any:
    wide, places, values = _in_front(size, dims, self, index, source)
    places = _along(places, values._array.shape, dim + 1)
    return _back(scatter_reduce(wide, dim + 1, places, values, reduce, include_self=include_self),
                 self, dims[0])


# ---- indices that count only where a mask says --------------------------------------------------


def _within(input: Tensor, indices: Any) -> list[Any]:
    return [None if i is None else i.clamp(-n, n - 1)
            for i, n in zip(indices, input._array.shape)]


@composite
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: Any) -> Tensor:
    """where(mask, input[indices], fill); indices may be out of range where `mask` is False."""
    if not input._array.size:
        shape = broadcast_shapes(mask._array.shape, *[i._array.shape for i in indices
                                                      if i is not None])
        return input.new_full(shape, fill)
    found = input[tuple([slice(None) if i is None else i for i in _within(input, indices)])]
    return found.masked_fill(~mask, fill)


@composite
def _unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Any,
                                        values: Tensor) -> Tensor:
    """The transpose of `_unsafe_masked_index`: `values` added to `input` where `mask` is True."""
    if not input._array.size:
        return basis.clone(input)
    return index_put(input, _within(input, indices), values.masked_fill(~mask, 0), True)
