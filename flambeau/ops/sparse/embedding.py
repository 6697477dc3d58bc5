"""Ops on dense tensors whose gradients are sparse: rows of a table, elements by index."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.tensor import Tensor, wrap
from flambeau.kernels import indexing as kernels
from flambeau.ops.sparse.compressed import COO
from flambeau.ops.sparse.tensors import make, sparse_op, with_values


def _rows_back(grad: Tensor, indices: Tensor, weight_shape: Any, padding_idx: int,
               scale: bool) -> list[Any]:
    flat = indices._array.reshape(-1).astype(np.int64)
    rows = grad.reshape(-1, weight_shape[1])
    if scale:
        counts = np.bincount(flat, minlength=weight_shape[0])[flat]
        rows = rows / wrap(counts).to(rows.dtype).unsqueeze(1)
    if padding_idx >= 0:
        kept = np.flatnonzero(flat != padding_idx)
        flat, rows = flat[kept], rows.index_select(0, wrap(kept))
    pattern = make(COO, (flat[None],), rows._array, weight_shape)
    return [with_values(rows, pattern), None]


@sparse_op("EmbeddingBackward0", "weight indices", "padding_idx scale", vjp=_rows_back)
def sparse_embedding(weight: Tensor, indices: Tensor, padding_idx: int, scale: bool) -> Tensor:
    """Rows of `weight`; their gradient is sparse."""
    return wrap(kernels.embedding(weight._array, indices._array))


def scattered(grad: Tensor, self_shape: Any, index: Tensor, dim: int) -> Tensor:
    """The gradient of `gather`: a sparse tensor of `grad`'s elements where `index` says."""
    i = index._array
    if not self_shape:
        where = np.zeros((0, i.size), np.int64)
    else:
        where = np.indices(i.shape).reshape(i.ndim, -1) if i.ndim else np.zeros((1, 1), np.int64)
        where[dim] = np.where(i.reshape(-1) < 0, i.reshape(-1) + self_shape[dim], i.reshape(-1))
    values = grad.reshape(-1)
    return with_values(values, make(COO, (where,), values._array, self_shape))


__all__ = ["scattered", "sparse_embedding"]
