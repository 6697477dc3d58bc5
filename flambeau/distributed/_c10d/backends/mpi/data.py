"""Tensors as MPI sees them: memory, types of elements, reductions."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau._support.source_locations import bump

_HALVES = (flambeau.float16, flambeau.bfloat16)
_EIGHTHS = (flambeau.float8_e4m3fn, flambeau.float8_e4m3fnuz, flambeau.float8_e5m2,
            flambeau.float8_e5m2fnuz)
ONLY_NATIVE = (flambeau.uint16, flambeau.uint32, flambeau.uint64)   # our kernels do not add them
_ADDED = {"SUM": "add_", "AVG": "add_", "PRODUCT": "mul_"}
_BETWEEN: dict[str, Any] = {
    "SUM": flambeau.add, "AVG": flambeau.add, "PRODUCT": flambeau.mul, "MIN": flambeau.minimum,
    "MAX": flambeau.maximum, "BAND": flambeau.bitwise_and, "BOR": flambeau.bitwise_or,
    "BXOR": flambeau.bitwise_xor}
_LOGICAL: dict[str, Any] = {
    **_BETWEEN, "SUM": flambeau.logical_or, "AVG": flambeau.logical_or,
    "PRODUCT": flambeau.logical_and}


def values(tensor: Tensor) -> np.ndarray:
    """The elements of a tensor in order, flat: its own memory where that is in order."""
    array = memory(tensor)
    return tensor.detach().resolve_conj().resolve_neg().contiguous()._array.reshape(-1) \
        if array is None else array


def memory(tensor: Tensor) -> np.ndarray | None:
    """The memory of a tensor, flat; None if its elements are not in order there."""
    array = tensor._array
    if array.flags.c_contiguous and not tensor.is_conj() and not tensor.is_neg():
        return array.reshape(-1)
    return None


class Target:
    """Where the elements of a tensor are written: its own memory, or in its place another from
    which `keep` copies them."""

    def __init__(self, tensor: Tensor, filled: bool = False):
        self.tensor = tensor
        found = memory(tensor)
        self._copied = found is None
        self.array: np.ndarray = values(tensor) if found is None and filled else \
            np.empty(tensor.numel(), tensor._array.dtype) if found is None else found

    def keep(self) -> None:
        """All has been written."""
        if self._copied:
            with flambeau.no_grad():
                self.tensor.copy_(as_tensor(self.array, self.tensor).view(self.tensor.shape))
        else:
            bump(self.tensor)


def as_tensor(array: np.ndarray, like: Tensor) -> Tensor:
    """A flat tensor of that memory."""
    raw = flambeau.from_numpy(array.view(np.uint8))
    return raw.view(like.dtype) if raw.numel() else flambeau.empty(0, dtype=like.dtype)


def as_bytes(array: np.ndarray) -> list[Any]:
    """Memory as MPI takes it, byte by byte."""
    return [array.view(np.uint8), _byte()]


@functools.cache
def _byte() -> Any:
    from mpi4py import MPI
    return MPI.BYTE


@functools.cache
def _types() -> dict[Any, Any]:
    from mpi4py import MPI
    return {flambeau.float32: MPI.FLOAT, flambeau.float64: MPI.DOUBLE,
            flambeau.int64: MPI.INT64_T, flambeau.int32: MPI.INT32_T, flambeau.int16: MPI.INT16_T,
            flambeau.int8: MPI.INT8_T, flambeau.uint8: MPI.UINT8_T,
            flambeau.uint16: MPI.UINT16_T, flambeau.uint32: MPI.UINT32_T,
            flambeau.uint64: MPI.UINT64_T}


@functools.cache
def _operations() -> dict[str, Any]:
    from mpi4py import MPI
    return {"SUM": MPI.SUM, "AVG": MPI.SUM, "PRODUCT": MPI.PROD, "MIN": MPI.MIN, "MAX": MPI.MAX,
            "BAND": MPI.BAND, "BOR": MPI.BOR, "BXOR": MPI.BXOR}


def native(dtype: Any, op: str) -> tuple[Any, Any] | None:
    """The type and the operation of MPI that reduce such elements, if it can (and does so with
    NaN as the kernels do)."""
    kind = _types().get(dtype)
    if kind is None or (dtype.is_floating_point and op in ("MIN", "MAX")):
        return None
    return kind, _operations()[op]


def reduce_into(result: Tensor, parts: list[Tensor], op: str) -> None:
    """Reduce flat tensors, in their order; the result may be one of them. Small floats
    are added in float32, and rounded once."""
    own = result.dtype
    dtype = flambeau.float32 if own in _HALVES or own in _EIGHTHS else own
    if len(parts) == 2 and op in _ADDED and own is not flambeau.bool and own not in _EIGHTHS:
        first, second = parts
        if result is second:
            first, second = second, first
        if result is first:
            getattr(result, _ADDED[op])(second)
        else:
            _BETWEEN[op](first, second, out=result)
        return
    total = parts[0].to(dtype)
    for part in parts[1:]:
        total = (_BETWEEN if dtype is not flambeau.bool else _LOGICAL)[op](total, part.to(dtype))
    result.copy_(total)


def divide(tensor: Tensor, size: int) -> None:
    """The mean in place of the sum."""
    with flambeau.no_grad():
        tensor.copy_(tensor.detach() / size)
