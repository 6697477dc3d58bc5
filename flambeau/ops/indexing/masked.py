"""Reading and writing elements of the flattened tensor, and by masks."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._support.settings import alert_not_deterministic, warn_once
from flambeau.core.dtypes import int64
from flambeau.core.promotion import type_name
from flambeau.core.shapes import broadcast_shapes, wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels._extension import Misfit, compiled
from flambeau.kernels.moving import indexing
from flambeau.kernels.moving.views import permute_memory_like
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.indexing.counted_slices import masked_select_batched
from flambeau.ops.indexing.gather import gather, scatter_add, scatter_src
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.indexing.slices import _in_front
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_as_rows, expand, expand_to, movedim, sum_to_size

# ---- flat, masked --------------------------------------------------------------------------------


def _flatten_examples(size: int, dims: Any, self: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The examples as rows, and the places in them, counted from the front."""
    rows, places = (batch_as_rows(t, d, size) for t, d in zip((self, index), dims))
    return rows, where(places < 0, places + rows._array.shape[1], places)


def _take_batched(size: int, dims: Any, self: Tensor, index: Tensor) -> Any:
    if dims[0] is None:
        return take(self, index), dims[1]
    rows, places = _flatten_examples(size, dims, self, index)
    shape = index._array.shape if dims[1] is None else movedim(index, dims[1], 0)._array.shape[1:]
    return reshape(gather(rows, 1, places), (size, *shape)), 0


def _prepare_take(input: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    if index._array.dtype != np.int64:
        raise RuntimeError("take(): Expected a long tensor for index, but got "
                           f"{type_name(index.dtype)}")
    return input, index


take = op(
    "take(Tensor self, Tensor index) -> Tensor",
    kernel=compiled("take")(indexing.take), kind="linear", refuses=("take_cpu", "UW8"),
    canonical=_prepare_take, kernel_checks=True,
    batch=_take_batched,
    d_self=lambda grad, self, index: put(zeros_like(self), index, grad, True),
    overlap="index whole", out_first=True,
    out_type="take(): self and out expected to have the same dtype, but got self.dtype = {found} "
             "and out.dtype = {out}",
    doc="The elements of the flattened `input` at `index`.")


@compiled("put")
def _put_flat(self: np.ndarray, index: np.ndarray, source: np.ndarray,
              accumulate: bool) -> np.ndarray:
    r = np.array(self, order="C")
    if index.size and not r.size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    wrong = indexing.outside(index, r.size)
    if wrong.size:
        raise IndexError(f"out of range: tried to access index {wrong[0]} on a tensor of {r.size} "
                         "elements.")
    indexing.index_put_(r.reshape(-1), (index.reshape(-1),), source.reshape(-1), accumulate)
    return r


def _put_kernel(self: np.ndarray, index: np.ndarray, source: np.ndarray,
                accumulate: bool) -> np.ndarray:
    if not accumulate:
        alert_not_deterministic("put_")
    r = _put_flat(self, index, source, accumulate)
    return r if self.flags.c_contiguous else permute_memory_like(self, r)


def _put_batched(size: int, dims: Any, self: Tensor, index: Tensor, source: Tensor,
                 accumulate: bool) -> Any:
    rows, places = _flatten_examples(size, dims, self, index)
    values = batch_as_rows(source, dims[2], size)
    write = scatter_add(rows, 1, places, values) if accumulate \
        else scatter_src(rows, places, values, 1)
    return reshape(write, _in_front(size, dims, self)[0]._array.shape
                   if self._array.ndim != (dims[0] is not None) else (size,)), 0


def _prepare_put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> tuple[Any, ...]:
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
    kernel=_put_kernel, kind="linear", refuses=("take_put_cpu", "UW8"),
    canonical=_prepare_put, kernel_checks=True, inplace=True, out=False,
    batch=_put_batched,
    d_self=lambda grad, index, accumulate: grad if accumulate else put(
        grad, index, new_zeros(grad, index._array.shape), False),
    d_source=lambda grad, index, source_shape: reshape(take(grad, index), source_shape),
    overlap="index",
    doc="`input` with `source` at places of the flattened tensor; `accumulate` adds.")


def _take_along_dim(input: Tensor, indices: Tensor, dim: int | None) -> Tensor:
    if dim is None:
        return gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)))
    a, b = [*input._array.shape], [*indices._array.shape]
    if len(a) != len(b):
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same "
                           f"number of dimensions, but got {len(a)} dimensions for input, "
                           f"and {len(b)} dimensions for indices")
    if indices._array.dtype != np.int64:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{type_name(indices.dtype)}")
    if a:
        dim = wrap_dim(dim, len(a))
        n, k = a[dim], b[dim]
        a[dim] = b[dim] = 1
        shape = broadcast_shapes(tuple(a), tuple(b))
        indices = indices % n if n else indices
        input = expand_to(input, (*shape[:dim], n, *shape[dim + 1:]))
        indices = expand_to(indices, (*shape[:dim], k, *shape[dim + 1:]))
    return gather(input, dim, indices)


take_along_dim = op(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", body=_take_along_dim,
    overlap="index", out_type=OUT_TYPE, out_reported_as="gather",
    doc="`gather` with broadcasting of the other dimensions; of the flattened tensor without "
        "`dim`.")


@compiled("masked_select")
def _masked_select_kernel(self: np.ndarray, mask: np.ndarray) -> np.ndarray:
    self, mask = np.broadcast_arrays(self, mask)
    return self[mask]


def _prepare_masked_select(input: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    if mask._array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    broadcast_shapes(mask._array.shape, input._array.shape)
    return input, mask


masked_select = op(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    kernel=_masked_select_kernel, kind="linear", canonical=_prepare_masked_select,
    kernel_checks=True, unsized=True, refuses=("masked_select", "U"), overlap="index whole",
    out_type="masked_select(): self and result must have the same scalar type", out_first=True,
    d_self=lambda grad, self_shape, mask: _selected_vjp(grad, self_shape, mask),
    batch=masked_select_batched,
    doc="The elements of `input` where `mask` is True, as a vector; the two broadcast.")


def _selected_vjp(grad: Tensor, shape: tuple[int, ...], mask: Tensor) -> Tensor:
    wide = broadcast_shapes(shape, mask._array.shape)
    found = masked_scatter(new_zeros(grad, wide), mask, grad)
    return found if wide == shape else sum_to_size(found, shape)


@compiled("masked_scatter")
def _masked_scatter_kernel(self: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    try:
        shape = np.broadcast_shapes(self.shape, mask.shape)
    except ValueError:
        raise Misfit from None
    r = np.array(np.broadcast_to(self, shape), order="C")
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
    wide, chosen = expand_to(wide, shape), expand_to(chosen, shape)
    values = batch_as_rows(source, dims[2], size)
    rows = batch_as_rows(chosen, 0, size)
    places = (rows.cumsum(1) - 1).clamp(0, max(values._array.shape[1] - 1, 0))
    return where(chosen, reshape(gather(values, 1, places), shape), wide), 0


def _check_source(input: Tensor, source: Tensor) -> None:
    if source._array.dtype != input._array.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got"
                           f"{type_name(input.dtype)} and {type_name(source.dtype)}")


def _check_written(input: Tensor, mask: Tensor, source: Tensor) -> None:
    _check_source(input, source)
    expand(mask, input._array.shape)


def _prepare_masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> tuple[Tensor, Tensor,
                                                                                  Tensor]:
    broadcast_shapes(mask._array.shape, input._array.shape)
    _check_source(input, source)
    if mask._array.dtype.kind != "b":
        if mask._array.dtype == np.uint8:
            warn_once("masked_scatter_ received a mask with dtype torch.uint8, this behavior is "
                      "now deprecated,please use a mask with dtype torch.bool instead.")
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype "
                           f"{type_name(mask.dtype)}")
    return input, mask, source


masked_scatter = op(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    kernel=_masked_scatter_kernel, kind="linear", refuses=("masked_scatter", "UW8"),
    canonical=_prepare_masked_scatter, kernel_checks=True, inplace=True,
    inplace_first=_check_written,
    out=False, batch=_masked_scatter_batched,
    d_self=lambda grad, mask: grad.masked_fill(mask, 0),
    d_source=lambda grad, mask, source_shape: _masked_vjp(grad, mask, source_shape),
    doc="`input` with the elements where `mask` is True replaced by those of `source`, in order.")


def _masked_vjp(grad: Tensor, mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """What the elements of the source get: the one at place k, where `mask` holds for the k-th
    time."""
    size = prod(shape)
    if not size:
        return new_zeros(grad, shape)
    mask = reshape(expand_to(mask, grad._array.shape), (-1,))
    given = reshape(grad, (-1,)).masked_fill(~mask, 0)
    places = (mask.cumsum(0) - 1).clamp(0, size - 1)
    return reshape(new_zeros(grad, (size,)).scatter_add(0, places, given), shape)
