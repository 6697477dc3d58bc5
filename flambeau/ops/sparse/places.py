"""Sparse tensors with their entries at other places: transposing, selecting, joining."""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau.core.shapes import is_expandable_to, size_of, wrap_dim, wrap_dims
from flambeau.core.tensor import Tensor, wrap
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.calls import rule, rules
from flambeau.ops.sparse.compressed import COO
from flambeau.ops.sparse.parts import resize_as_sparse_, resize_compressed
from flambeau.ops.sparse.tensors import (
    SparseTensor,
    is_recorded,
    is_sparse,
    like,
    make_sparse,
    sparse_dim_of,
    unsupported,
    without_history,
)
from flambeau.ops.sparse.values import (
    coalesced,
    grad_values,
    sparse_op,
    stored_values,
    to_coo,
    with_values,
)
from flambeau.schema.arguments import is_index
from flambeau.schema.errors import type_name

# ---- places -------------------------------------------------------------------------------------

def _moved_vjp(grad: Tensor, take: Any, pattern: SparseTensor, source: SparseTensor) -> list[Any]:
    values = grad_values(grad, pattern)
    if take is not None:
        zeros = flambeau.zeros(source._data.shape, dtype=values.dtype)
        values = zeros.index_add(0, wrap(take), values)
    return [with_values(values.reshape(source._data.shape), source)]


_movers: dict[str, Any] = {}


def moved(node: str, self: SparseTensor, indices: np.ndarray, shape: Any, take: Any = None,
          sorted_: bool = False) -> SparseTensor:
    """The entries `take` of a tensor (None: all) at other places."""
    op = _movers.get(node)
    if op is None:
        @sparse_op(node, params="take pattern source", vjp=_moved_vjp)
        def op(self: SparseTensor, take: Any, pattern: Any, source: Any) -> SparseTensor:
            data = self._data if take is None else self._data[take]
            return like(pattern, data)
        _movers[node] = op
    data = self._data if take is None else self._data[take]
    pattern = make_sparse(COO, (indices,), data, shape, sorted_)
    return op(self, take, pattern, without_history(self))


def _coalesced_coordinates(input: SparseTensor) -> SparseTensor:
    """Coordinates; coalesced where a gradient must know each place once."""
    tensor = to_coo(input)
    return coalesced(tensor) if is_recorded(tensor) else tensor


@rule("t")
def t(input: Tensor) -> Tensor:
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is "
                           f"{input._array.ndim}D")
    return input if input._array.ndim < 2 else _transpose_by_node(input, 0, 1, "TBackward0")


rules["numpy_T"] = t


@rule("transpose", "swapaxes", "swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    ndim = input._array.ndim
    return _transpose_by_node(input, wrap_dim(dim0, ndim), wrap_dim(dim1, ndim),
                              "TransposeBackward0")


def _transpose_by_node(input: Tensor, dim0: int, dim1: int, node: str) -> Tensor:
    return _transposers[node](input, dim0, dim1)


_TURNED = {forms.CSR: forms.CSC, forms.CSC: forms.CSR, forms.BSR: forms.BSC, forms.BSC: forms.BSR}


def _transpose(self: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    shape, sparse = [*self._array.shape], sparse_dim_of(self)
    if max(dim0, dim1) >= sparse and dim0 != dim1:
        raise RuntimeError("sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
                           f"{sparse}, d0: {dim0}, d1: {dim1}")
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    if self._layout is COO:
        order = list(range(sparse))
        order[dim0], order[dim1] = dim1, dim0
        turned = make_sparse(COO, (self._where[0][order],), self._data, shape)
        turned._coalesced = self._coalesced and (dim0 == dim1 or not len(self._data))
        return turned
    if {dim0, dim1} != {sparse - 2, sparse - 1}:
        raise NotImplementedError("transpose of a batch dimension of a compressed tensor")
    data = self._data
    if self._layout in forms.BLOCKED:
        at = self._where[1].ndim
        data = data.swapaxes(at, at + 1)
    return make_sparse(_TURNED[self._layout], self._where, data, shape)


_transposers = {
    "TransposeBackward0": sparse_op(
        "TransposeBackward0", params="dim0 dim1",
        vjp=lambda grad, dim0, dim1: [flambeau.transpose(grad, dim0, dim1)])(_transpose),
    "TBackward0": sparse_op("TBackward0", params="dim0 dim1",
                            vjp=lambda grad: [flambeau.t(grad)])(_transpose)}


def broadcast_to(input: SparseTensor, size: Any) -> Tensor:
    """The entries repeated along new dimensions in front, and along those of one element."""
    shape, own = tuple(size_of((size,))), input._array.shape
    sparse, extra = sparse_dim_of(input), len(shape) - input._array.ndim
    if not is_expandable_to(own, shape):
        raise RuntimeError(f"The expanded size of the tensor {list(shape)} must match the "
                           f"existing size {list(own)}")
    source = coalesced(input)
    indices, count = source._where[0], len(source._data)
    repeats = shape[:extra] + tuple([m if n == 1 != m else 1 for n, m in zip(
        own[:sparse], shape[extra:])])
    # every entry at every place of the dimensions that are repeated
    places = np.indices((*repeats, count)).reshape(len(repeats) + 1, -1)
    take = places[-1]
    wide = np.concatenate([places[:extra], places[extra:-1] + indices[:, take]])
    order = np.lexsort(wide[::-1])
    result = moved("SparseBroadcastToBackward0", source, wide[:, order],
                   (*shape[:extra + sparse], *own[sparse:]), take[order], True)
    dense = shape[extra + sparse:]
    if dense == own[sparse:]:
        return result
    values = stored_values(result).expand(-1, *dense)
    return with_values(values, make_sparse(COO, result._where, values._array, shape, True))


rules["sparse_broadcast_to"] = broadcast_to


@rule("permute", "permute_to")
def permute(input: SparseTensor, *places: Any, dims: Any = None) -> Tensor:
    dims = places if dims is None else dims
    source = _coalesced_coordinates(input)
    given = tuple(size_of(tuple(dims)))
    wrapped = [wrap_dim(d, source._array.ndim) for d in given]
    if len(given) == source._array.ndim and len(set(wrapped)) != len(given):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    dims = wrap_dims(given, source._array.ndim)
    sparse = sparse_dim_of(source)
    if len(dims) != source._array.ndim:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not "
                           "match the length of the desired ordering of dimensions i.e. input.dim()"
                           f" = {source._array.ndim} is not equal to len(dims) = {len(dims)}")
    order, turned = list(dims[:sparse]), list(dims[sparse:])
    if any(d >= sparse for d in order):
        raise RuntimeError("permute(sparse_coo): transpositions between sparse and dense "
                           "dimensions are not allowed.Only transpositions within sparse and "
                           "dense dimensions are supported.")
    shape = [source._array.shape[d] for d in order + sorted(turned)]
    result = moved("PermuteBackward0", source, source._where[0][order], shape)
    if turned != sorted(turned):
        values = stored_values(result).permute(0, *[d - sparse + 1 for d in turned])
        shape = [source._array.shape[d] for d in dims]
        result = with_values(values, make_sparse(COO, result._where, values._array, shape))
    # a first dimension that is counted from the back is, in PyTorch, not the first one
    result._coalesced = source._coalesced and order == sorted(order) and given[:1] == (0,)
    return result


@rule("resize_")
def resize(input: SparseTensor, size: Any, memory_format: Any = None) -> Tensor:
    if input._layout is COO:
        raise unsupported("resize_", input)
    return resize_compressed(input, size)


@rule("resize_as_")
def resize_as(input: SparseTensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    if input.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    return resize_as_sparse_(input, the_template) if input._layout is COO is the_template.layout \
        else resize(input, the_template._array.shape)


@rule("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> Tensor:
    source = _coalesced_coordinates(input)
    dim, shape = wrap_dim(dim, source._array.ndim + 1), [*source._array.shape]
    sparse = sparse_dim_of(source)
    shape.insert(dim, 1)
    if dim > sparse:
        values = stored_values(source).unsqueeze(dim - sparse + 1)
        return with_values(values, make_sparse(COO, source._where, values._array, shape))
    return moved("UnsqueezeBackward0", source, np.insert(source._where[0], dim, 0, axis=0), shape,
                 None)


@rule("select")
def select(input: SparseTensor, dim: int, index: int) -> Tensor:
    ndim = input._array.ndim
    dim, index = wrap_dim(dim, ndim), int(index)
    n = input._array.shape[dim]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size "
                         f"{list(input._array.shape)} at dimension {dim}")
    index += n if index < 0 else 0
    source, sparse = _coalesced_coordinates(input), sparse_dim_of(input)
    shape = [m for d, m in enumerate(source._array.shape) if d != dim]
    if dim >= sparse:
        values = stored_values(coalesced(source)).select(dim - sparse + 1, index)
        return with_values(values, make_sparse(COO, coalesced(source)._where, values._array, shape,
                                               True))
    take = np.flatnonzero(source._where[0][dim] == index)
    if sparse == 1:
        found = stored_values(source).index_select(0, wrap(take))
        return found.sum(0, dtype=found.dtype)
    return moved("SelectBackward0", source, np.delete(source._where[0], dim, 0)[:, take], shape,
                 take, source._coalesced)


@rule("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(select(input, dim, i) for i in range(input.size(dim)))


@rule("narrow")
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    n = input._array.shape[wrap_dim(dim, input._array.ndim)]
    start = int(start) + (n if start < 0 else 0)
    if not 0 <= start <= start + length <= n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return narrow_copy(input, dim, start, length)


@rule("narrow_copy")
def narrow_copy(input: SparseTensor, dim: int, start: int, length: int) -> Tensor:
    ndim = input._array.ndim
    if not -ndim <= dim < ndim:
        raise RuntimeError(f"Dimension {dim} out of range. Expecting 0 <= dim < {ndim}.")
    source = _coalesced_coordinates(input)
    dim, shape = wrap_dim(dim, ndim), [*source._array.shape]
    start = int(start) + (shape[dim] if start < 0 else 0)
    if not 0 <= start <= start + length <= shape[dim]:
        raise RuntimeError("Invalid range to narrow. range(start, start+length) must be a subset "
                           f"of range(0, {shape[dim]}).")
    shape[dim] = length
    sparse = sparse_dim_of(source)
    if dim >= sparse:
        source = coalesced(source)
        values = stored_values(source).narrow(dim - sparse + 1, start, length)
        return with_values(values, make_sparse(COO, source._where, values._array, shape, True))
    along = source._where[0][dim]
    take = np.flatnonzero((along >= start) & (along < start + length))
    indices = source._where[0][:, take].copy()
    indices[dim] -= start
    return moved("NarrowCopyBackward0", source, indices, shape, take, source._coalesced)


@rule("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor) -> Tensor:
    source = _coalesced_coordinates(input)
    dim, shape = wrap_dim(dim, source._array.ndim), [*source._array.shape]
    wanted, sparse = index._array.reshape(-1), sparse_dim_of(source)
    if wanted.size and not -shape[dim] <= wanted.min() <= wanted.max() < shape[dim]:
        raise IndexError("index_select(): index contains an index that is out of range for tensor "
                         f"of size {list(shape)} at dimension {dim}")
    wanted = np.where(wanted < 0, wanted + shape[dim], wanted)
    shape[dim] = len(wanted)
    if dim >= sparse:
        source = coalesced(source)
        values = stored_values(source).index_select(dim - sparse + 1, wrap(wanted))
        return with_values(values, make_sparse(COO, source._where, values._array, shape, True))
    along = source._where[0][dim]
    order = np.argsort(wanted, kind="stable")
    first = np.searchsorted(wanted[order], along, "left")
    count = np.searchsorted(wanted[order], along, "right") - first
    take = np.repeat(np.arange(len(along)), count)
    within = np.arange(len(take)) - np.repeat(np.cumsum(count) - count, count)
    slot = order[np.repeat(first, count) + within]
    by_slot = np.argsort(slot, kind="stable")
    take, slot = take[by_slot], slot[by_slot]
    indices = source._where[0][:, take].copy()
    indices[dim] = slot
    return moved("IndexSelectBackward0", source, indices, shape, take)


@rule("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> Tensor:
    if not all(is_sparse(x) for x in tensors):
        raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found at position "
                           f"{[is_sparse(x) for x in tensors].index(False)}.")
    sources = [_coalesced_coordinates(x) for x in tensors]
    dim = wrap_dim(dim, sources[0]._array.ndim)
    shape, sparse = [*sources[0]._array.shape], sparse_dim_of(sources[0])
    for i, source in enumerate(sources):
        found = source._array.shape
        if len(found) != len(shape) or any(
                n != m for d, (n, m) in enumerate(zip(found, shape)) if d != dim):
            raise RuntimeError(f"All tensors must have the same shape: {shape} (except in the "
                               f"concatenating dimension), but found shape: {list(found)} at "
                               f"position {i}.")
    for i, source in enumerate(sources):
        if sparse_dim_of(source) != sparse:
            other = sparse_dim_of(source)
            raise RuntimeError("All tensors must have the same sparse_dim and dense_dim: "
                               f"{sparse}, {len(shape) - sparse}, but tensor at position {i} has "
                               f"{other}, {len(shape) - other}.")
    if dim >= sparse:
        return _cat_dense(sources, dim - sparse + 1)
    shape[dim] = int(np.sum([s._array.shape[dim] for s in sources]))
    parts, offset = [], 0
    for source in sources:
        indices = source._where[0].copy()
        indices[dim] += offset
        offset += source._array.shape[dim]
        parts.append(indices)
    values = flambeau.cat([stored_values(s) for s in sources])
    indices = np.concatenate(parts, 1)
    return with_values(values, make_sparse(COO, (indices,), values._array, shape))


def _cat_dense(sources: list[Any], dim: int) -> Tensor:
    """Entries side by side along dimension `dim` of the values, with zeros beside each."""
    extents = [s._data.shape[dim] for s in sources]
    total, before, parts = sum(extents), 0, []
    for source, extent in zip(sources, extents):
        after = total - before - extent
        pads = [0, 0] * (source._data.ndim - 1 - dim) + [before, after]
        parts.append(flambeau.nn.functional.pad(stored_values(source), pads))
        before += extent
    values = flambeau.cat(parts)
    indices = np.concatenate([s._where[0] for s in sources], 1)
    shape = [*sources[0]._array.shape[:len(indices)], *values._array.shape[1:]]
    return with_values(values, make_sparse(COO, (indices,), values._array, shape))


@rule("stack")
def stack(tensors: Any, dim: int = 0) -> Tensor:
    return cat([unsqueeze(x, dim) for x in tensors], dim)


@rule("getitem__", "getitem")
def getitem(input: Tensor, index: Any) -> Tensor:
    """Integers, whole slices, None and `...`; a slice with bounds copies."""
    items = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [i for i in items if not isinstance(i, Tensor)]:
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        given = len([i for i in items if i is not None]) - 1
        items[at:at + 1] = [slice(None)] * (input._array.ndim - given)
    if len([i for i in items if i is not None]) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim}")
    result, dim = input, 0
    for item in items:
        if item is None:
            result, dim = flambeau.unsqueeze(result, dim), dim + 1
        elif isinstance(item, slice):
            start, stop, step = item.indices(result._array.shape[dim])
            if step != 1:
                raise NotImplementedError("slices of a sparse tensor with a step")
            if (start, stop) != (0, result._array.shape[dim]):
                cut = narrow_copy if is_sparse(result) else flambeau.narrow
                result = cut(result, dim, start, max(stop - start, 0))
            dim += 1
        elif isinstance(item, Tensor) and item._array.ndim:
            if item._array.ndim > 1 or item._array.dtype.kind == "b":   # which no layout has
                raise unsupported("index", input, (item,))
            result, dim = flambeau.index_select(result, dim, item), dim + 1
        else:
            if not is_index(item):
                raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or "
                                 f"byte Variables are valid indices (got {type_name(item)})")
            result = flambeau.select(result, dim, int(item))
    return result
