"""Empty matrices of types that LAPACK does not know: PyTorch looks for a kernel only where there is
an element, and so gives empty results."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.kernels import _extension
from flambeau.kernels.moving.views import array_strides
from flambeau.kernels.refused import characters


def columns(a: np.ndarray) -> np.ndarray:
    """`a` with each matrix laid out column by column, down to the strides of what has no
    neighbours: in an empty matrix, or one of one row."""
    turned = np.ascontiguousarray(np.swapaxes(a, -1, -2))
    if 1 not in turned.shape and turned.size:
        return turned.swapaxes(-1, -2)
    strides, step = [], a.itemsize
    for n in reversed(turned.shape):
        strides.append(step)
        step *= max(n, 1)
    strides.reverse()
    strides[-2:] = strides[:-3:-1]
    memory = turned if turned.size else np.empty(0, a.dtype)
    return np.ndarray(a.shape, a.dtype, memory, 0, strides)


def compiled(name: str, empty: str = "") -> Callable[[Any], Any]:
    """Declare a kernel in NumPy, as `_extension.compiled` does. It also takes arrays of the kinds
    `empty` of types where one has no elements: it is run on floats in their place."""
    declare = _extension.compiled(name)
    if not empty:
        return declare

    def declare_both(kernel: Any) -> Any:
        @functools.wraps(kernel)
        def twin(first: np.ndarray, *rest: Any) -> Any:
            own = first.dtype
            if own.char not in characters(empty) or all(
                    a.size for a in (first, *rest) if type(a) is np.ndarray):
                return kernel(first, *rest)
            known, real = np.dtype(np.float32), own
            if own.kind == "W":
                known, real = np.dtype(np.complex64), np.dtype(np.float16)
            found = kernel(*[np.empty(a.shape, known) if type(a) is np.ndarray and a.dtype == own
                             else a for a in (first, *rest)])
            types = {np.dtype(np.float32): real, known: own}
            return tuple([_as(r, types) for r in found]) if type(found) is tuple \
                else _as(found, types)
        return declare(twin)
    return declare_both


def _as(result: np.ndarray, types: dict[np.dtype, np.dtype]) -> np.ndarray:
    made = result.astype(types.get(result.dtype, result.dtype))
    return made if result.ndim < 2 or array_strides(made) == array_strides(result) \
        else columns(made)


__all__ = ["columns", "compiled"]
