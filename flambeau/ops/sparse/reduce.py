"""Sums of sparse tensors over dimensions, and softmax over their entries."""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau.core.shapes import wrap_dim, wrap_dims
from flambeau.core.tensor import Tensor, wrap
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.calls import rule, rules
from flambeau.ops.sparse.compressed import COO
from flambeau.ops.sparse.math import through_values
from flambeau.ops.sparse.tensors import (
    SparseTensor,
    coordinates,
    is_sparse,
    make_sparse,
    sparse_dim_of,
    unsupported,
    without_history,
)
from flambeau.ops.sparse.values import (
    as_form,
    coalesced,
    form_of,
    grad_values,
    sparse_op,
    stored_values,
    to_dense,
    with_values,
)

# ---- sums ---------------------------------------------------------------------------------------

@sparse_op("SumBackward0", vjp=lambda grad, self_shape: [flambeau.broadcast_to(grad, self_shape)])
def total(self: SparseTensor) -> Tensor:
    return flambeau.sum(wrap(self._data))


def _sum_vjp(grad: Tensor, dims: Any, pattern: SparseTensor, keepdim: bool) -> list[Tensor]:
    indices, data = coordinates(pattern)
    sparse, shape = len(indices), pattern._array.shape
    kept = [d for d in range(sparse) if d not in dims]
    flat = [n for d, n in enumerate(shape) if d in dims and d >= sparse]
    tail = tuple(1 if d in dims else n for d, n in enumerate(shape) if d >= sparse)
    rest = tuple(n for d, n in enumerate(shape) if d not in dims)
    if keepdim:
        grad = as_form(grad, None).reshape(rest)
    if kept:
        dense = tuple(n for d, n in enumerate(shape) if d >= sparse and d not in dims)
        places = make_sparse(COO, (indices[kept],), np.empty((len(data), *dense), data.dtype), rest)
        values = grad_values(grad, places)
    else:
        values = to_dense(grad).unsqueeze(0)
    if flat:
        values = values.reshape(len(data) if kept else 1, *tail)
    return [with_values(values.expand(data.shape).clone(), pattern)]


def _sum_entries(self: SparseTensor, dims: Any, pattern: SparseTensor, keepdim: bool) -> Tensor:
    indices, data = coordinates(self)
    sparse, shape = len(indices), self._array.shape
    kept = [d for d in range(sparse) if d not in dims]
    inner = tuple(d - sparse + 1 for d in dims if d >= sparse)
    if inner:
        data = data.sum(inner, dtype=data.dtype)
    if not kept:
        result: Tensor = wrap(np.asarray(data.sum(0, dtype=data.dtype)))
        return result.reshape([1 if d in dims else n for d, n in enumerate(shape)]) if keepdim \
            else result
    rest = tuple(n for d, n in enumerate(shape) if d not in dims)
    indices, data = forms.coalesced(indices[kept], data, rest)
    result = make_sparse(COO, (indices,), data, rest, True)
    for dim in dims if keepdim else ():
        result = flambeau.unsqueeze(result, dim)
    return result


def _spread_vjp(grad: Tensor, dims: Any, pattern: SparseTensor, keepdim: bool) -> list[Tensor]:
    """Where all sparse dimensions are summed, the sum is dense, and the gradient as well."""
    shape = pattern._array.shape
    if not keepdim:
        grad = grad.reshape([1 if d in dims else n for d, n in enumerate(shape)])
    return [grad.expand(shape)]


_sum_dims = {node: sparse_op(node, params="dims pattern keepdim", vjp=_sum_vjp)(_sum_entries)
             for node in ("SumBackward1", "SparseSumBackward0")}
_sum_all = sparse_op("SumBackward1", params="dims pattern keepdim", vjp=_spread_vjp)(_sum_entries)


def _sum(input: Any, dim: Any, keepdim: bool, dtype: Any, node: str) -> Tensor:
    if dtype is not None:
        input = input.to(dtype)
    elif input._array.dtype.kind in "bui":
        input = input.to(flambeau.tensor(0).dtype)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return total(input)
    dims = wrap_dims((dim,) if isinstance(dim, int) else tuple(dim), input._array.ndim)
    source = coalesced(input)
    dense = node == "SumBackward1" and set(range(sparse_dim_of(source))) <= set(dims)
    adder = _sum_all if dense else _sum_dims[node]
    result = adder(source, tuple(sorted(dims)), without_history(source), keepdim)
    if input._layout is not COO and keepdim:
        return as_form(result, form_of(input))
    return result


@rule("sum")
def sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *,
        dtype: Any = None) -> Tensor:
    return _sum(input, dim, keepdim, dtype, "SumBackward1")


@rule("sparse.sum")
def sparse_sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    if not is_sparse(input):
        raise unsupported("_sparse_sum", input)
    if dim is None and input._layout is COO:
        values = input.coalesce().values()
        return values.sum() if dtype is None else values.sum(dtype=dtype)
    return _sum(input, dim, False, dtype, "SparseSumBackward0")


@rule("mean")
def mean(input: Tensor, dim: Any = None, *, dtype: Any = None) -> Tensor:
    if dim is not None:
        return NotImplemented
    return total(input if dtype is None else input.to(dtype)) / input._array.size


@rule("norm")
def norm(input: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False,
         dtype: Any = None) -> Tensor:
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    dims = () if dim is None else (dim,) if isinstance(dim, int) else dim
    if dims and len(set(wrap_dims(tuple(dims), input._array.ndim))) != input._array.ndim:
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must "
                           "either be empty or contain all dimensions of the input")
    if dtype is not None:
        if p == "fro":
            raise ValueError("dtype argument is not supported in frobenius norm")
        raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
    return flambeau.norm(stored_values(coalesced(input)), 2 if p == "fro" or p is None else p)


@rule("any")
def any_(input: SparseTensor, *_: Any) -> Tensor:
    return flambeau.any(wrap(coalesced(without_history(input))._data))


# ---- softmax ------------------------------------------------------------------------------------

def _softmax_of(pattern: SparseTensor, dim: int, log: bool) -> Any:
    """Softmax of values over the entries that differ only in dimension `dim`."""
    indices, sparse = pattern._where[0], sparse_dim_of(pattern)
    if dim >= sparse:
        name = "log_softmax" if log else "softmax"
        return lambda v: getattr(flambeau, name)(v, dim - sparse + 1)
    others = [d for d in range(sparse) if d != dim]
    flat = forms.flat_index(indices[others], tuple([pattern._array.shape[d] for d in others]))
    groups, place = np.unique(flat, return_inverse=True)
    of = wrap(place.astype(np.int64))

    def function(v: Tensor) -> Tensor:
        top = np.full((len(groups), *v.shape[1:]), -np.inf, v._array.dtype)
        np.maximum.at(top, of._array, v._array)
        shifted = v - wrap(top)[of]
        sums = flambeau.zeros(len(groups), *v.shape[1:], dtype=v.dtype).index_add(
            0, of, shifted.exp())
        return shifted - sums.log()[of] if log else shifted.exp() / sums[of]
    return function


def _softmax_rule(name: str, node: str, log: bool) -> Any:
    def apply(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        if not is_sparse(input) or input._layout is not COO:
            raise unsupported(f"_sparse_{name}", input)
        given: Any = input if dtype is None else input.to(dtype)
        source = coalesced(given)
        dim = wrap_dim(dim, source._array.ndim)
        return through_values(node, source, _softmax_of(without_history(source), dim, log))
    return apply


rules["sparse.softmax"] = _softmax_rule("softmax", "SparseSoftmaxBackward0", False)
rules["sparse.log_softmax"] = _softmax_rule("log_softmax", "SparseLogSoftmaxBackward0", True)
