"""`gradcheck` for functions of sparse tensors, by way of their values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor


def wrapped(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    def check(function: Any, inputs: Any, **kwargs: Any) -> Any:
        """`gradcheck` of a function of sparse tensors."""
        masked = kwargs.get("masked", False)
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        parts: list[Any] = []
        places: list[Any] = []
        for value in given:
            if not _checked(value):
                places.append(None)
                parts.append(value)
                continue
            pattern = _pattern(value.detach(), masked)
            places.append(pattern)
            parts.append(_values(pattern).clone().requires_grad_())

        def of_values(*values: Any) -> Any:
            rebuilt = [v if p is None else _with(v, p) for v, p in zip(values, places)]
            result = function(*rebuilt)
            many = result if isinstance(result, (tuple, list)) else (result,)
            dense = tuple(r.to_dense(masked_grad=masked) if isinstance(r, Tensor)
                          and r.layout is not flambeau.strided else r
                          for r in many)
            return dense if isinstance(result, (tuple, list)) else dense[0]
        return gradcheck(of_values, tuple(parts), **kwargs)
    return check


def _checked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad \
        and value.layout is not flambeau.strided


def _pattern(value: Tensor, masked: bool) -> Tensor:
    """Where the variables are: the entries, or all elements."""
    if masked:
        return value.coalesce() if value.is_sparse else value
    everywhere = flambeau.ones(value.shape, dtype=value.dtype)
    if value.is_sparse:
        full = everywhere.to_sparse(value.sparse_dim())      # type: ignore[call-arg]
    else:
        blocked = value.layout in (flambeau.sparse_bsr, flambeau.sparse_bsc)
        batch = value.values().dim() - 1 - 2 * blocked - value.dense_dim()
        size = tuple(value.values().shape[batch + 1:batch + 3]) if blocked else None
        full = everywhere.to_sparse(layout=value.layout, blocksize=size,
                                    dense_dim=value.dense_dim())
    return value.to_dense().sparse_mask(full)


def _values(pattern: Tensor) -> Tensor:
    return pattern.values().detach()


def _with(values: Tensor, pattern: Tensor) -> Tensor:
    if pattern.is_sparse:
        return flambeau.sparse_coo_tensor(pattern.indices(), values, pattern.shape,
                                          is_coalesced=True)
    rows = pattern.layout in (flambeau.sparse_csr, flambeau.sparse_bsr)
    outer, inner = (pattern.crow_indices(), pattern.col_indices()) if rows else (
        pattern.ccol_indices(), pattern.row_indices())
    return flambeau.sparse_compressed_tensor(outer, inner, values, pattern.shape,
                                             layout=pattern.layout)
