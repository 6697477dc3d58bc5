"""Reading and writing whole slices by index."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core.dtypes import bool_, int32, int64
from flambeau.core.promotion import convert, type_name
from flambeau.core.shapes import broadcast_shapes, wrap_dim
from flambeau.core.tensor import Tensor, array_strides
from flambeau.dispatch.declaration import op
from flambeau.kernels._extension import Misfit, compiled
from flambeau.kernels.moving import indexing, views
from flambeau.kernels.refused import refuse
from flambeau.ops.indexing.gather import (
    gather,
    scatter_add,
    scatter_reduce,
    scatter_reduce_vjp,
    scatter_src,
    scatter_value,
)
from flambeau.ops.indexing.index import index_put, new_zeros
from flambeau.ops.node_names import one_node
from flambeau.ops.out_types import OUT_DEVICE, OUT_TYPE
from flambeau.ops.pointwise.comparison import logical_not
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.view.conversion import cast, clone
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_first, expand_to, movedim

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


@compiled("index_select")
def _index_select_kernel(self: np.ndarray, index: np.ndarray, dim: int) -> np.ndarray:
    if not self.ndim:
        if index.size != 1:
            raise Misfit
        if index.item():
            raise IndexError("index out of range in self")
        return self.copy()
    if index.size and not self.shape[dim]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    return indexing.index_select(self, dim, index.reshape(-1))


def _index_select_batched(size: int, dims: Any, self: Tensor, index: Tensor, dim: int) -> Any:
    if self._array.ndim == (dims[0] is not None):           # of numbers: their one slice
        return (self, dims[0]) if dims[0] is not None else (
            expand_to(self, (size,)), 0)
    if dims[1] is None:
        return index_select(movedim(self, dims[0], 0), dim + 1, index), 0
    index = movedim(index, dims[1], 0)
    if dims[0] is None:
        flat = index_select(self, dim, reshape(index, (-1,)))
        shape = flat._array.shape
        split = reshape(flat, (*shape[:dim], *index._array.shape, *shape[dim + 1:]))
        return split, dim
    self = movedim(self, dims[0], 0)
    return gather(self, dim + 1, _spread_index(index, self._array.shape, dim + 1)), 0


def _spread_index(index: Tensor, shape: tuple[int, ...], dim: int) -> Tensor:
    """One vector of indices for each example, (n, k), as the index of every element of slices
    along `dim`: like `shape`, with k there."""
    n, k = index._array.shape if index._array.ndim == 2 else (index._array.shape[0], 1)
    spread = reshape(index, (n, *(1,) * (dim - 1), k, *(1,) * (len(shape) - dim - 1)))
    return expand_to(spread, (n, *shape[1:dim], k, *shape[dim + 1:]))


def _in_front(size: int, dims: Any, *tensors: Tensor) -> list[Tensor]:
    """The tensors with the examples in front, those of numbers as vectors of one element."""
    found = []
    for tensor, at in zip(tensors, dims):
        whole = batch_first(tensor, at, size)
        found.append(whole if whole._array.ndim > 1 else reshape(whole, (size, 1)))
    return found


def _restore_scalar_shape(result: Tensor, self: Tensor, at: int | None) -> tuple[Tensor, int]:
    """`result` in the shape of `self`, which a number was made a vector for."""
    number = self._array.ndim == (at is not None)
    return (reshape(result, (-1,)) if number else result), 0


def _prepare_index_select(input: Tensor, index: Tensor, dim: int) -> tuple[Tensor, Tensor, int]:
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index._array.dtype.kind != "i" or index._array.dtype.itemsize < 4:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input._array.ndim and index._array.size != 1:
        raise RuntimeError("index_select(): Index to scalar can have only 1 value, got "
                           f"{index._array.size} value(s)")
    return input, index, wrap_dim(dim, input._array.ndim)


index_select = op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    refuses=(lambda self, *_: "index_select" if self.ndim < 2 else "", "U"),
    kernel=_index_select_kernel, kind="linear", dims="dim", canonical=_prepare_index_select,
    kernel_checks=True, batch=_index_select_batched,
    d_self=lambda grad, self_shape, index, dim: index_add(
        new_zeros(grad, self_shape), dim, index, grad),
    overlap="index whole",
    out_type="index_select(): self and result must have the same scalar type",
    doc="The slices of `input` along `dim` that the vector `index` names.")


@compiled("index_add")
def _index_add_kernel(self: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int,
                      alpha: Any) -> np.ndarray:
    if not self.ndim:
        return indexing.index_add(self.reshape(1), 0, index.reshape(-1), source.reshape(1),
                                  alpha).reshape(())
    return indexing.index_add(self, dim, index.reshape(-1), source, alpha)


def _index_add_batched(size: int, dims: Any, self: Tensor, index: Tensor, source: Tensor, dim: int,
                       alpha: Any) -> Any:
    wide, places, values = _in_front(size, dims, self, index, source)
    if dims[1] is None:
        added = index_add(wide, dim + 1, reshape(index, (-1,)), values, alpha=alpha)
    else:
        values = values if type(alpha) is int and alpha == 1 else values * alpha
        added = scatter_add(wide, dim + 1, _spread_index(places, values._array.shape, dim + 1),
                            values)
    return _restore_scalar_shape(added, self, dims[0])


def _prepare_index_add(input: Tensor, index: Tensor, source: Tensor, dim: int,
                       alpha: Any) -> tuple[Any, ...]:
    return input, index, source, _check_combined("index_add_", input, dim, index, source), alpha


def _add_kernel_name(self: np.ndarray, index: Any = None, source: Any = None, dim: int = 0,
                     alpha: Any = 1) -> str:
    if self.ndim < 2:
        return "index_add_"
    slices = indexing.adds_slices(self.ndim, dim, alpha)
    return "scatter_gather_tensor_cpu" if slices else "add_stub"


index_add = op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    kernel=_index_add_kernel, kind="linear", dims="dim", canonical=_prepare_index_add,
    kernel_checks=True, inplace=True, batch=_index_add_batched, d_self=lambda grad: grad,
    d_source=lambda grad, index, dim, alpha: index_select(grad, dim, index) * alpha,
    overlap="index", out_type=OUT_TYPE, refuses=(_add_kernel_name, "U8"),
    doc="`input` with alpha · slices of `source` added to the slices that `index` names.")


@compiled("index_copy")
def _index_copy_kernel(self: np.ndarray, index: np.ndarray, source: np.ndarray,
                       dim: int) -> np.ndarray:
    if not self.ndim:
        for wrong in indexing.outside(index, 1)[:1]:
            raise IndexError(f"index_copy_(): index {wrong} is out of bounds for dimension 0 with "
                             "size 1")
        return source.reshape(()).copy()
    if index.size and not self.shape[dim]:
        raise Misfit
    return indexing.index_copy(self, dim, index.reshape(-1), source)


def _index_copy_batched(size: int, dims: Any, self: Tensor, index: Tensor, source: Tensor,
                        dim: int) -> Any:
    wide, places, values = _in_front(size, dims, self, index, source)
    if dims[1] is None:
        return _restore_scalar_shape(index_copy(wide, dim + 1, reshape(index, (-1,)), values), self,
                                     dims[0])
    places = _spread_index(places, values._array.shape, dim + 1)
    return _restore_scalar_shape(scatter_src(wide, places, values, dim + 1), self, dims[0])


def _prepare_index_copy(input: Tensor, index: Tensor, source: Tensor, dim: int) -> tuple[Any, ...]:
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
    _check_any(input, index, dim)
    return input, index, source, dim


index_copy = op(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", autocast="widest",
    kernel=_index_copy_kernel, kind="linear", refuses=("index_copy_cpu", "U8"), dims="dim",
    canonical=_prepare_index_copy, kernel_checks=True,
    inplace=True, batch=_index_copy_batched,
    d_self=lambda grad, index, dim: index_fill(grad, dim, index, 0),
    d_source=lambda grad, index, source_shape, dim: index_select(grad, dim, index).expand(
        source_shape),
    overlap="index", out_type=OUT_TYPE,
    doc="`input` with the slices that `index` names replaced by those of `source`.")


@compiled("index_fill")
def _index_fill_kernel(self: np.ndarray, index: np.ndarray, dim: int, value: Any) -> np.ndarray:
    r = views.copy(self)
    if isinstance(value, np.ndarray):
        value = convert(value, self.dtype)
    elif isinstance(value, complex) and self.dtype.kind not in "cW":
        raise Misfit
    if not r.ndim:
        for wrong in indexing.outside(index, 1)[:1]:
            raise IndexError(f"index {wrong} is out of bounds for dimension 0 with size 1")
        r[...] = value
    else:
        size = r.shape[dim]
        wrong = indexing.outside(index, size)
        if wrong.size and not size:
            raise Misfit
        if wrong.size:
            raise IndexError(f"index {wrong[0]} is out of bounds for dimension {dim} with size "
                             f"{size}")
        r[(slice(None),) * dim + (index,)] = value
    return r


def _check_any(input: Tensor, index: Tensor, dim: int) -> None:
    """Raise, as PyTorch does, for places in a dimension that has none."""
    array, n = input._array, index._array.size
    if not array.ndim or array.shape[dim] or not n:
        return
    sizes, strides = [*array.shape], [*array_strides(array)]
    sizes[dim], strides[dim] = n, 0
    if 0 in sizes:
        return
    needed = array.itemsize * (1 + sum([(k - 1) * step for k, step in zip(sizes, strides)]))
    raise RuntimeError(f"setStorage: sizes {sizes}, strides {strides}, storage offset "
                       f"{input.storage_offset()}, and itemsize {array.itemsize} requiring a "
                       f"storage size of {needed} are out of bounds for storage of size "
                       f"{input.untyped_storage().nbytes()}")


def _prepare_index_fill(input: Tensor, index: Tensor, dim: int, value: Any) -> tuple[Any, ...]:
    if index.dtype is not int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    dim = wrap_dim(dim, input._array.ndim)
    if index._array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    _check_any(input, index, dim)
    if isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not "
                           "supported")
    return input, index, dim, value


def _prepare_index_fill_tensor(input: Tensor, index: Tensor, value: Tensor, dim: int) -> tuple[Any,
                                                                                               ...]:
    if value._array.ndim:
        raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got "
                           f"tensor with {value._array.ndim} dimension(s).")
    input, index, dim, _ = _prepare_index_fill(input, index, dim, 0)
    return input, index, value, dim


def _index_fill_batched(size: int, dims: Any, self: Tensor, index: Tensor, dim: int,
                        value: Any) -> Any:
    wide, places = _in_front(size, dims, self, index)
    if dims[1] is None:
        return _restore_scalar_shape(index_fill(wide, dim + 1, reshape(index, (-1,)), value), self,
                                     dims[0])
    places = _spread_index(places, wide._array.shape, dim + 1)
    return _restore_scalar_shape(scatter_value(wide, places, value, dim + 1), self, dims[0])


def _index_fill_tensor_batched(size: int, dims: Any, self: Tensor, index: Tensor, value: Tensor,
                               dim: int) -> Any:
    """Filled with a value for each example: the examples' values where a fill with True is."""
    wide, places = _in_front(size, dims, self, index)
    nothing = new_zeros(wide, wide._array.shape).to(bool_)
    chosen = _index_fill_batched(size, (0, None if dims[1] is None else 0), nothing,
                                 index if dims[1] is None else places, dim, True)[0]
    value = cast(value, self._array.dtype)
    if dims[2] is not None:
        value = reshape(value, (size, *(1,) * (wide._array.ndim - 1)))
    return _restore_scalar_shape(where(chosen, value, wide), self, dims[0])


index_fill = op(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    kernel=_index_fill_kernel, kind="general", dims="dim", canonical=_prepare_index_fill,
    kernel_checks=True,
    inplace=True, out=False, refuses=("index_fill_cpu", "U8"), overlap="index anywhere fill",
    batch=_index_fill_batched, d_self=lambda grad, index, dim: index_fill(grad, dim, index, 0),
    jvp=lambda self_t, index, dim: index_fill(self_t, dim, index, 0),
    doc="`input` with the slices that `index` names filled with `value`.")
op("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
   overload_of=index_fill,
   kernel=lambda self, index, value, dim: _index_fill_kernel(self, index, dim, value),
   kind="linear", dims="dim", canonical=_prepare_index_fill_tensor, kernel_checks=True,
   inplace=True, out=False, refuses=("index_fill_cpu", "U8"), overlap="index anywhere fill",
   batch=_index_fill_tensor_batched,
   node="IndexFillBackward1", d_self=lambda grad, index, dim: index_fill(grad, dim, index, 0),
   d_value=lambda grad, index, value_dtype, dim: cast(
       _where_filled(grad, index, dim).sum(), value_dtype))


def _where_filled(grad: Tensor, index: Tensor, dim: int) -> Tensor:
    """The gradient at the places that were filled, each of which counts once; else 0."""
    nothing = new_zeros(grad, grad._array.shape).to(bool_)
    return where(index_fill(nothing, dim, index, True), grad, 0)


def _expand_index(index: Tensor, shape: tuple[int, ...], dim: int) -> Tensor:
    """A vector of places along `dim`, for each element of slices."""
    own = [1] * len(shape)
    if own:
        own[dim] = index._array.size
    return reshape(index, own).expand(shape)


def _prepare_index_reduce(input: Tensor, index: Tensor, source: Tensor, dim: int, reduce: str,
                          include_self: bool) -> tuple[Any, ...]:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin "
                           f"but got {reduce}.")
    warn_once("index_reduce() is in beta and the API may change at any time.")
    dim = _check_combined("index_reduce_", input, dim, index, source)
    refuse(input._array, "bUcW8", "index_func_" if include_self else
           "index_reduce_func_exclude_input_init")
    return input, index, source, dim, reduce, include_self


@compiled("index_reduce")
def _index_reduce_kernel(self: np.ndarray, index: np.ndarray, source: np.ndarray, dim: int,
                         reduce: str, include_self: bool) -> np.ndarray:
    shape = [1] * source.ndim
    if shape:
        shape[dim] = index.size
    spread = np.broadcast_to(index.reshape(shape), source.shape)
    return indexing.scatter(self, dim, spread, source, reduce, include_self)


index_reduce = op(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
    "bool include_self=True) -> Tensor",
    kernel=_index_reduce_kernel, canonical=_prepare_index_reduce, inplace=True, nondiff="index",
    vjp=lambda grad, self, index, source, result, dim, reduce, include_self, needs:
    scatter_reduce_vjp(grad, self, _expand_index(index, source._array.shape, dim), source, result,
                       dim, reduce, include_self, needs,
                       clear=lambda grad: index_fill(grad, dim, index, 0)),
    batch=lambda size, dims, self, index, source, dim, reduce, include_self: _index_reduce_batched(
        size, dims, self, index, source, dim, reduce, include_self),
    overlap="index", out_type=OUT_TYPE, out_device=OUT_DEVICE,
    doc="""`scatter_reduce` by whole slices: `index` is a vector; "prod", "mean", "amax" or
    "amin".""")


def _index_reduce_batched(size: int, dims: Any, self: Tensor, index: Tensor, source: Tensor,
                          dim: int, reduce: str, include_self: bool) -> Any:
    wide, places, values = _in_front(size, dims, self, index, source)
    places = _spread_index(places, values._array.shape, dim + 1)
    return _restore_scalar_shape(scatter_reduce(wide, dim + 1, places, values, reduce,
                                                include_self=include_self),
                                 self, dims[0])


# ---- indices that count only where a mask says --------------------------------------------------


def _unsafe_index_in_mask(input: Tensor, indices: Any) -> list[Any]:
    if any(t is not None and t.dtype not in (int64, int32) for t in indices):
        if len({t._device for t in indices if t is not None}) > 1:
            raise RuntimeError("tensors used as indices must be long or int tensors")
        wrong = next(t for t in indices if t is not None and t.dtype not in (int64, int32))
        raise RuntimeError("_unsafe_masked_index found unexpected index type "
                           f"{type_name(wrong.dtype)}")
    if len(indices) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim} (got "
                         f"{len(indices)})")
    return [None if i is None else i.clamp(-n, n - 1)
            for i, n in zip(indices, input._array.shape)]


@op("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    out=False, method=False)
@one_node
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: Any) -> Tensor:
    """where(mask, input[indices], fill); indices may be out of range where `mask` is False."""
    if not input._array.size:
        shape = broadcast_shapes(mask._array.shape, *[i._array.shape for i in indices
                                                      if i is not None])
        return input.new_full(shape, fill)
    found = input[tuple([slice(None) if i is None else i for i in _unsafe_index_in_mask(input,
                                                                                        indices)])]
    left_out = logical_not(mask)
    broadcast_shapes(left_out._array.shape, found._array.shape)
    return found.masked_fill(left_out, fill)


@op("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, "
    "Tensor values) -> Tensor", out=False, method=False)
@one_node
def _unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Any,
                                        values: Tensor) -> Tensor:
    """The transpose of `_unsafe_masked_index`: `values` added to `input` where `mask` is True."""
    if not input._array.size:
        return clone(input)
    within, left_out = _unsafe_index_in_mask(input, indices), logical_not(mask)
    broadcast_shapes(left_out._array.shape, values._array.shape)
    return index_put(input, within, values.masked_fill(left_out, 0), True)
