"""Memory that is written and read at once: which ops refuse it, as PyTorch's do."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.op import Op
from flambeau.core.tensor import Tensor, array_strides, plain

# Ops that read by index: not even the very elements that are written may be read.
_BY_INDEX = frozenset({"index_add", "index_copy", "index_put", "index_reduce", "put", "scatter",
                       "scatter_add", "scatter_reduce", "cat", "stack", "gather", "index_select",
                       "take", "masked_select", "cross", "kthvalue"})
# Others that go element by element, beside those of that kind.
_BY_ELEMENT = frozenset({"copy", "lerp", "clamp", "clamp_min", "clamp_max", "where", "heaviside",
                         "pow", "outer", "bernoulli", "cumsum", "cumprod", "logcumsumexp",
                         "sort", "topk", "max", "min", "median", "mode", "norm", "renorm"})


def check_overlap(op: Op, written: Tensor, operands: Any) -> None:
    """Raise if `op` would read memory that it has written already: dense tensors that overlap in
    part, or at all for ops that read by index."""
    by_index = op.name in _BY_INDEX
    if not by_index and op.kind != "pointwise" and op.name not in _BY_ELEMENT:
        return
    target = written._array
    for operand in operands:
        if type(operand) in (tuple, list):
            check_overlap(op, written, operand)
        if type(operand) not in plain or (operand is written and not by_index):
            continue
        source = operand._array
        if source is not target and not share_memory(target, source):
            continue
        same = (target.__array_interface__["data"] == source.__array_interface__["data"]
                and target.nbytes == source.nbytes
                and array_strides(target) == array_strides(source))
        if by_index or (not same and is_dense(target) and is_dense(source)):
            raise RuntimeError("unsupported operation: some elements of the input tensor and the "
                               "written-to tensor refer to a single memory location. Please "
                               "clone() the tensor before performing the operation.")


def share_memory(a: np.ndarray, b: np.ndarray) -> bool:
    """May two arrays look at the same memory, without being one?"""
    return a is not b and (a.base is not None or b.base is not None) and np.may_share_memory(a, b)


def is_dense(array: np.ndarray) -> bool:
    """Do the elements fill their memory without overlap or gaps, in some order of dimensions?"""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    expected = array.itemsize
    for stride, n in sorted(zip(array.strides, array.shape)):
        if n == 1:
            continue
        if stride != expected:
            return False
        expected *= n
    return True
