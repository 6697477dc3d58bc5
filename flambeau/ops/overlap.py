"""Memory that is written and read at once: which ops refuse it, as PyTorch's do."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._support.settings import warn_user
from flambeau.core.op import Op
from flambeau.core.tensor import Tensor, array_strides, plain_types
from flambeau.core.views import check_places
from flambeau.kernels.moving.views import is_dense

slot: Callable[[Tensor], np.ndarray]        # what is in memory, whatever the tensor shows of it
slot = Tensor._array.__get__

# Ops that PyTorch warns of where they write to expanded tensors, and the indexing that is one of
# them.
_DEPRECATED = {"masked_fill": "tensor[mask] = scalar", "index_fill": "tensor[mask] = scalar",
               "index_put": "tensor[indices] = tensor"}


def allows_internal_overlap(op: Op) -> bool:
    """May `op` write to a tensor of which several elements are one in memory?"""
    declared = (op.functional or op).declaration
    return declared is not None and "anywhere" in declared.overlap


def write_changes(name: str, target: np.ndarray, before: np.ndarray, values: np.ndarray) -> None:
    """Write to elements that are one in memory: what an op has not changed is not written, or it
    would undo what the op has done to another element in its place."""
    if name in _DEPRECATED:
        warn_of_expanded(name)
    np.copyto(target, values, where=values != before)


def warn_of_expanded(name: str) -> None:
    warn_user(f"Use of {name}_ on expanded tensors is deprecated. Please clone() the tensor before "
              "performing this operation. This also applies to advanced indexing e.g. "
              f"{_DEPRECATED[name]}")


def check_overlap(op: Op, written: Tensor, operands: Any) -> None:
    """Raise if `op` would read memory that it has written already: dense tensors that overlap in
    part, or at all for ops that read by index."""
    declared = (op.functional or op).declaration
    said = declared.overlap if declared is not None else ""
    by_index = "index" in said
    if not by_index and "element" not in said and op.kind != "pointwise":
        return
    target = slot(written)
    for operand in operands:
        if type(operand) in (tuple, list):
            check_overlap(op, written, operand)
        if type(operand) not in plain_types or (operand is written and not by_index):
            continue
        source = operand._array
        if not source.ndim and "fill" in said:              # read as a number
            continue
        if source is not target and not share_memory(target, source):
            continue
        same = (target.__array_interface__["data"][0] == source.__array_interface__["data"][0]
                and target.nbytes == source.nbytes
                and array_strides(target) == array_strides(source))
        apart = is_dense(target) and is_dense(source) and (by_index or not same)
        if apart or (by_index and source is target):
            raise RuntimeError("unsupported operation: some elements of the input tensor and the "
                               "written-to tensor refer to a single memory location. Please "
                               "clone() the tensor before performing the operation.")


def check_resized_overlap(op: Op, out: Tensor, operands: Any, resized: bool = False) -> None:
    """The same of `out=` that is to get another shape: ops that read by index look first, and
    most of them again when it has been `resized`."""
    said = op.declaration.overlap if op.declaration is not None else ""
    if "index" in said and not (resized and "whole" in said):
        if "whole" in said:
            check_places(out)
        check_overlap(op, out, operands[1:] if op.declaration.inplace else operands)


def share_memory(a: np.ndarray, b: np.ndarray) -> bool:
    """May two arrays look at the same memory, without being one?"""
    return a is not b and (a.base is not None or b.base is not None) and np.may_share_memory(a, b)
