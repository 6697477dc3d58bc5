"""Sparse tensors of given values, the values of sparse ones, and changes of form between them: what
all other ops on sparse tensors are made of."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._support.scopes import within
from flambeau._support.source_locations import counter_of
from flambeau.core import devices
from flambeau.core.autograd.formulas import infer_saved_values
from flambeau.core.autograd.recording import edges_of, record
from flambeau.core.calling.overrides import intercept_canonical
from flambeau.core.modes import grad_enabled, grad_mode, interceptors
from flambeau.core.op import Op
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.members import member
from flambeau.ops.coercion import unwrap_slices
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.compressed import COO, TITLES
from flambeau.ops.sparse.tensors import (
    SparseTensor,
    blocksize_of,
    coordinates,
    entries,
    is_sparse,
    like,
    make_sparse,
    on_meta,
    sparse_dim_of,
    without_history,
)
from flambeau.ops.view.shape import movedim


def _not_batched(size: int, dims: Any, *canonical: Any) -> Any:
    raise RuntimeError("vmap: sparse tensors cannot be batched")


def _slice_by_slice(op: Op) -> Any:
    """Batching where dense tensors alone have slices, and the results are dense: a call a slice."""
    def batch(size: int, dims: Any, *canonical: Any) -> Any:
        inputs = op.inputs(canonical)
        if any(is_sparse(t) and d is not None for t, d in zip(inputs, dims)) or not size:
            return _not_batched(size, dims)
        one = op.call(*op.with_inputs(canonical, [
            t if d is None else movedim(t, d, 0)[0] for t, d in zip(inputs, dims)]))
        if is_sparse(one):
            return _not_batched(size, dims)
        return NotImplemented
    return batch


def sparse_op(node_name: str, tensors: str = "self", params: str = "", vjp: Any = None,
              kind: str = "general", batch: Any = None) -> Callable[..., Any]:
    """Declare an op by a kernel that takes tensors, the `tensors` first, and gives a new one."""

    def declare(kernel: Callable[..., Any]) -> Callable[..., Any]:
        op = Op(kernel.__name__.strip("_"), kind, kernel=kernel, tensors=tuple(tensors.split()),
                params=tuple(params.split()), vjp=vjp, node_name=node_name, namespace=None,
                dims=(), shapes=(), core="", batch_rule=batch, doc=kernel.__doc__)
        op.batch_rule = batch or _slice_by_slice(op)
        infer_saved_values(op)

        def direct(*canonical: Any) -> Tensor:
            result = within(grad_mode, False, kernel, *canonical)
            edges = edges_of(op.inputs(canonical)) if grad_enabled() else None
            if edges is not None:
                record(op, canonical, edges, result)
            return result

        def call(*canonical: Any) -> Tensor:
            return intercept_canonical(op, canonical) if interceptors else direct(*canonical)
        vars(call)["op"] = op
        op.direct, op.call, op.function = direct, call, call
        return call
    return declare

@sparse_op("ValuesBackward0", params="pattern",
           vjp=lambda grad, pattern: [with_values(grad, pattern)])
def values_of(self: SparseTensor, pattern: SparseTensor) -> Tensor:
    result = wrap(self._data)
    result._counter = counter_of(self)
    return result


def _with_values(values: Tensor, pattern: SparseTensor) -> SparseTensor:
    return like(pattern, values._array)


def _values_vjp(grad: Tensor, pattern: SparseTensor) -> list[Tensor]:
    return [grad_values(grad, pattern)]


_coo_with_values = sparse_op("SparseCooTensorWithDimsAndTensorsBackward0", "values", "pattern",
                             vjp=_values_vjp)(_with_values)
_compressed_with_values = sparse_op("SparseCompressedTensorBackward0", "values", "pattern",
                                    vjp=_values_vjp)(_with_values)


def with_values(values: Tensor, pattern: SparseTensor) -> SparseTensor:
    """A sparse tensor of `values` at the places of `pattern`."""
    make_one = _coo_with_values if pattern._layout is COO else _compressed_with_values
    return make_one(values, pattern)


def stored_values(tensor: SparseTensor) -> Tensor:
    """The values, with history."""
    return values_of(tensor, without_history(tensor))


def grad_values(grad: Tensor, pattern: SparseTensor) -> Tensor:
    """The values of a gradient, sparse or dense, at the places of `pattern`."""
    if is_sparse(grad) and same_places(grad, pattern):
        return stored_values(grad)
    return stored_values(masked(grad, pattern))


def same_places(a: SparseTensor, b: SparseTensor) -> bool:
    """Are these entries of the same places, one each?"""
    return (a._layout is b._layout and (a._layout is not COO or (a._coalesced and b._coalesced))
            and a._data.shape == b._data.shape
            and all(x is y or np.array_equal(x, y) for x, y in zip(a._where, b._where)))


def _mask_vjp(grad: Tensor, pattern: SparseTensor, form: Any) -> list[Tensor]:
    dense = to_dense(masked(grad, coalesced(pattern)))  # elsewhere nothing depends on it
    return [dense if form is None else as_form(dense, form)]


@sparse_op("SparseMaskBackward0", params="pattern form",
           vjp=_mask_vjp)
def masked_values(self: Tensor, pattern: SparseTensor, form: Any) -> SparseTensor:
    wanted, _ = coordinates(pattern)
    n = len(wanted)
    if is_sparse(self) and sparse_dim_of(self) == n:
        data = forms.values_at(*entries(self), wanted, self._array.shape)
    else:
        dense = to_dense(self)._array if is_sparse(self) else self._array
        data = dense[tuple(wanted)] if n else np.broadcast_to(
            dense, (wanted.shape[1], *dense.shape)).copy()
    return like(pattern, data.reshape(pattern._data.shape))


def masked(self: Tensor, pattern: SparseTensor) -> SparseTensor:
    return masked_values(self, without_history(pattern), form_of(self))

def form_of(tensor: Tensor) -> Any:
    """What another tensor must be made to have the form of this one; None for dense."""
    if not is_sparse(tensor):
        return None
    sparse = sparse_dim_of(tensor)
    return tensor._layout, sparse, blocksize_of(tensor), tensor._array.ndim - sparse


def as_form(tensor: Tensor, form: Any) -> Tensor:
    """`tensor` with a layout as `form_of` tells it; itself if it has that."""
    found = form_of(tensor)
    if found == form:
        return tensor
    if form is None:
        return to_dense(tensor)
    return change_form(tensor, form, found)


def _change_form(self: Tensor, form: Any, before: Any) -> SparseTensor:
    layout, sparse, blocksize, _ = form
    shape = self._array.shape
    if is_sparse(self) and self._layout is not COO:
        # Entries stay as they come: places that are zero, columns before rows, whole blocks.
        indices, data = coordinates(self)
        if layout is COO:
            return make_sparse(COO, (indices,), data, shape, self._layout is forms.CSR)
    elif is_sparse(self):
        indices, data = entries(self)
        if len(indices) != sparse:
            indices, data = forms.nonzero_entries(forms.to_dense(indices, data, shape), sparse)
    else:
        indices, data = forms.nonzero_entries(self._array, sparse)
    if layout is COO:
        return make_sparse(COO, (indices,), data, shape, True)
    *where, data = forms.compress(indices, data, shape, layout, blocksize)
    if is_sparse(self) and self._layout is not COO:
        where = [part.astype(self._where[0].dtype) for part in where]
    return make_sparse(layout, tuple(where), data, shape)


def _form_vjp(grad: Tensor, before: Any) -> list[Tensor]:
    return [to_dense(grad) if before is None else as_form(grad, before)]


def _form_batched(size: int, dims: Any, self: Tensor, form: Any, before: Any) -> Any:
    """The slices' places side by side: one more sparse dimension, in front."""
    layout, sparse, _, dense = form
    if layout is not COO or before is not None:
        return _not_batched(size, dims)
    whole = movedim(self, dims[0], 0)
    return change_form(whole, (COO, sparse + 1, None, dense), None), 0


_changers = {node: sparse_op(node, params="form before", vjp=_form_vjp,
                             batch=_form_batched)(_change_form)
             for node in ("ToSparseBackward0", "ToSparseBackward1", "ToSparseCsrBackward0",
                          "ToSparseCscBackward0", "ToSparseBsrBackward0", "ToSparseBscBackward0")}


def change_form(tensor: Tensor, form: Any, before: Any, node: str = "ToSparseBackward1") -> Any:
    return _changers[node](tensor, form, before)


def _dense_vjp(grad: Tensor, self: Any, masked_grad: bool, form: Any) -> list[Tensor]:
    if not masked_grad:
        return [as_form(grad, form)]
    if is_sparse(self):
        return [masked(grad, coalesced(self))]
    return [as_form(mul(grad, densify(self, False, form) != 0), form)]      # under vmap


@sparse_op("ToDenseBackward0", params="masked_grad form", vjp=_dense_vjp,
           batch=lambda size, dims, self, masked_grad, form: (to_dense(self), 0))
def densify(self: SparseTensor, masked_grad: bool, form: Any) -> Tensor:
    return wrap(forms.to_dense(*entries(self), self._array.shape))


@member("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
        function=False)
def to_dense(self: Tensor, dtype: Any, masked_grad: bool | None) -> Tensor:
    """This tensor with all of its elements; itself if it is dense.

    The gradient of a sparse tensor is computed for the elements that it holds, or with
    `masked_grad=False` for all.
    """
    slices = unwrap_slices(self)
    if slices is not self and is_sparse(slices):
        return densify(self, masked_grad is not False, form_of(slices))
    if not is_sparse(self):
        return self if dtype is None else self.to(dtype)
    if dtype is not None and self._layout is COO:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    dense = densify(self, masked_grad is not False, form_of(self))
    if self._device is devices.meta:
        dense = on_meta(dense)
    return dense if dtype is None else dense.to(dtype)

def expect(tensor: Tensor, name: str, wanted: Any, what: str) -> None:
    layout = tensor.layout
    if layout not in wanted:
        raise RuntimeError(f"{name} expected {what} tensor layout but got {TITLES[layout]}")


def expect_coo(tensor: Tensor, name: str) -> None:
    expect(tensor, name, (COO,), "sparse coordinate")


def to_coo(tensor: SparseTensor, sparse: int | None = None) -> SparseTensor:
    """`tensor` with coordinates of so many sparse dimensions."""
    sparse = sparse_dim_of(tensor) if sparse is None else sparse
    found: Any = as_form(tensor, (COO, sparse, None, tensor._array.ndim - sparse))
    return found


@sparse_op("CoalesceBackward0", vjp=lambda grad: [grad])
def _coalesce(self: SparseTensor) -> SparseTensor:
    indices, data = entries(self)
    return make_sparse(COO, (indices,), data, self._array.shape, True)


def coalesced(tensor: SparseTensor) -> SparseTensor:
    return tensor if tensor._layout is not COO or tensor._coalesced else _coalesce(tensor)
