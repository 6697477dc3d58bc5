"""Sparse matrices out of diagonals, and linear systems with sparse matrices."""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau._support.c_functions import type_name as type_name_of
from flambeau.core.promotion import type_name
from flambeau.core.shapes import size_of
from flambeau.core.tensor import Tensor, wrap
from flambeau.kernels.linalg import sparse_products
from flambeau.ops.linalg.matmul import conj
from flambeau.ops.pointwise.arithmetic import neg
from flambeau.ops.sparse import compressed as forms
from flambeau.ops.sparse.layouts import to_sparse
from flambeau.ops.sparse.products import at_places, operand
from flambeau.ops.sparse.tensors import SparseTensor, is_sparse, make_sparse
from flambeau.ops.sparse.values import as_form, sparse_op, with_values


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix of that `shape` whose diagonal `offsets[i]` is row i of `diagonals`.

    Element j of a row goes to column j; what falls outside is left out.

    >>> import flambeau
    >>> flambeau.sparse.spdiags(flambeau.ones(1, 2), flambeau.tensor([0]), (2, 2)).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    for at, (name, given) in enumerate((("diagonals", diagonals), ("offsets", offsets)), 1):
        if not isinstance(given, Tensor):
            raise TypeError(f"_spdiags(): argument '{name}' (position {at}) must be Tensor, not "
                            f"{type_name_of(given)}")
    if diagonals._array.ndim not in (1, 2):
        raise RuntimeError("Diagonals must be vector or matrix")
    rows = diagonals if diagonals._array.ndim == 2 else diagonals.unsqueeze(0)
    steps = offsets._array.reshape(-1)
    if steps.dtype != np.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {type_name(offsets.dtype)}")
    if isinstance(shape, Tensor):
        raise TypeError("_spdiags(): argument 'shape' (position 3) must be tuple of ints, not "
                        "Tensor")
    shape = tuple(size_of((shape,)))
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, got {list(shape)}")
    if offsets._array.ndim > 1:
        raise RuntimeError("Offsets must be scalar or vector, got "
                           f"{offsets._array.ndim} dimensions")
    if len(steps) != rows._array.shape[0]:
        raise RuntimeError(f"Number of diagonals ({rows._array.shape[0]}) does not match the "
                           f"number of offsets ({len(steps)})")
    if len(np.unique(steps)) != len(steps):
        raise RuntimeError("Offset tensor contains duplicate values")
    found = [np.zeros((3, 0), np.int64)]
    for i, step in enumerate(steps):
        first = max(int(step), 0)
        last = min(rows._array.shape[1], shape[1], shape[0] + int(step))
        columns = np.arange(first, max(last, first))
        found.append(np.stack([np.full_like(columns, i), columns, columns - step]))
    which, columns, lines = np.concatenate(found, 1)
    values = rows[wrap(which), wrap(columns)]
    indices = np.stack([lines, columns]).astype(np.int64)
    pattern = make_sparse(forms.COO, (indices,), values._array, shape)
    result = with_values(values, pattern)
    if layout is None or layout is forms.COO:
        return result
    if layout not in (forms.CSR, forms.CSC):
        raise RuntimeError("Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
                           f"{forms.TITLES.get(layout, layout)}")
    return to_sparse(result, layout=layout)


spdiags.__module__ = "torch.sparse"


def _solve_vjp(grad: Tensor, self: SparseTensor, result: Tensor, needs: list[bool]) -> list[Any]:
    by = as_form(flambeau.t(self), (forms.CSR, 2, None, 0))
    other = solve(conj(by), grad)
    return [at_places(self, neg(other).unsqueeze(1), result.conj().unsqueeze(0))
            if needs[0] else None, other if needs[1] else None]


@sparse_op("SpsolveBackward0", "self other", vjp=_solve_vjp)
def _solve(self: SparseTensor, other: Tensor) -> Tensor:
    return wrap(sparse_products.solve(*operand(self), other._array).astype(self._array.dtype))


def solve(input: Tensor, other: Tensor) -> Tensor:
    """x with input @ x = other."""
    if not is_sparse(input) or input._layout is not forms.CSR:
        raise RuntimeError("spsolve: expected a matrix in csr layout")
    rows, cols = input._array.shape
    if rows != cols or other._array.shape != (rows,):
        raise RuntimeError(f"spsolve: expected a square matrix and a vector that fits, got "
                           f"{[rows, cols]} and {list(other._array.shape)}")
    return _solve(input, other)


__all__ = ["solve", "spdiags"]
