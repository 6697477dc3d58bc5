"""Other shapes on the memory that a tensor has, with more memory where that is too small."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._support.settings import filled_if_deterministic
from flambeau.core.shapes import contiguous_strides
from flambeau.core.tensor import Tensor, array_offset, array_root


def on_buffer(buffer: Any, dtype: np.dtype, size: Any, stride: Any, offset: int) -> np.ndarray:
    """An array on a buffer; `stride` and `offset` in elements."""
    item = dtype.itemsize
    if 0 in size and not buffer.nbytes:
        buffer, offset = np.empty(0, dtype), 0
    return np.ndarray(size, dtype, buffer, offset * item, tuple([s * item for s in stride]))


def bytes_needed(size: Any, stride: Any, offset: int, item: int) -> int:
    """How many bytes of memory such a tensor looks at."""
    if 0 in size:
        return 0
    return (offset + sum((n - 1) * s for n, s in zip(size, stride)) + 1) * item


def _grown(tensor: Tensor, needed: int) -> Any:
    """The tensor's memory as a buffer of at least that many bytes."""
    if needed <= array_root(tensor._array).nbytes:
        return array_root(tensor._array)
    if not tensor._array.nbytes:
        return filled_if_deterministic(
            np.zeros(-(-needed // tensor._array.itemsize), tensor._array.dtype))
    storage = tensor.untyped_storage()
    before = storage.nbytes()
    storage.resize_(needed)
    item = tensor._array.itemsize
    filled_if_deterministic(storage._bytes[before - before % item:needed - needed % item].view(
        tensor._array.dtype))
    return storage._bytes


def resized(tensor: Tensor, size: tuple[int, ...]) -> np.ndarray:
    """An array of that shape, row by row, from where the tensor begins in its memory."""
    array = tensor._array
    root, item, count = array_root(array), array.itemsize, prod(size)
    offset = 0 if root is array or not array.nbytes else array_offset(array)
    if count and offset + count * item <= root.nbytes:
        return np.ndarray(size, array.dtype, root, offset)
    stride, dtype = contiguous_strides(size), array.dtype
    del array, root             # memory that somebody else holds does not grow
    grown = _grown(tensor, bytes_needed(size, stride, offset // item, item))
    return on_buffer(grown, dtype, size, stride, offset // item)
