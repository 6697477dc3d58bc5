"""Ops on dense tensors whose gradients are sparse: rows of a table, elements by index."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.tensor import Tensor, wrap
from flambeau.ops.sparse.compressed import COO
from flambeau.ops.sparse.tensors import make_sparse
from flambeau.ops.sparse.values import with_values


def rows_of_table(grad: Tensor, indices: Tensor, count: int, padding_idx: int, scale: bool
                  ) -> Tensor:
    """The gradient of a table of `count` rows of which `indices` were looked up."""
    flat = indices._array.reshape(-1).astype(np.int64)
    rows = grad.reshape(flat.size, grad._array.shape[-1])
    if scale:
        counts = np.bincount(flat, minlength=count)[flat]
        rows = rows / wrap(counts).to(rows.dtype).unsqueeze(1)
    if padding_idx >= 0:
        kept = np.flatnonzero(flat != padding_idx)
        flat, rows = flat[kept], rows.index_select(0, wrap(kept))
    shape = (count, grad._array.shape[-1])
    return with_values(rows, make_sparse(COO, (flat[None],), rows._array, shape))


def scattered(grad: Tensor, self_shape: Any, index: Tensor, dim: int) -> Tensor:
    """The gradient of `gather`: a sparse tensor of `grad`'s elements where `index` says."""
    i = index._array
    if not self_shape:
        where = np.zeros((0, i.size), np.int64)
    else:
        where = np.indices(i.shape).reshape(i.ndim, -1) if i.ndim else np.zeros((1, 1), np.int64)
        where[dim] = np.where(i.reshape(-1) < 0, i.reshape(-1) + self_shape[dim], i.reshape(-1))
    values = grad.reshape(-1)
    return with_values(values, make_sparse(COO, (where,), values._array, self_shape))


__all__ = ["rows_of_table", "scattered"]
