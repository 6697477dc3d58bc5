"""Tensors on device `meta`: a shape and a type, no values.

Such a tensor holds an array of stride 0, one element large. Ops run on it as on any other; what
they compute is thrown away but for shape and type.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core import devices
from flambeau.core.tensor import LEAF, LOOKUP, Tensor, alias, basis, plain, tensor_types


class MetaTensor(Tensor):
    """A tensor without values. Users see it as `Tensor` with `device='meta'`."""

    _device = devices.meta


plain.discard(MetaTensor)
MetaTensor.__module__, MetaTensor.__name__ = "torch", "Tensor"


def hollow(shape: tuple[int, ...], array_type: np.dtype) -> np.ndarray:
    """An array of that shape and type that takes the memory of one element."""
    return np.broadcast_to(np.zeros((), array_type), shape)


def to_meta(tensor: Tensor) -> Tensor:
    """A tensor of the same shape, type and history without values."""
    result = alias(hollow(tensor._array.shape, tensor._array.dtype), MetaTensor)
    if tensor._edge is LEAF:
        result._edge = LEAF
    elif tensor._edge is LOOKUP:
        result._edge = None if tensor._view.node is None else tensor._view.node
    else:
        result._edge = tensor._edge
    return result


def call(op: Any, canonical: tuple[Any, ...]) -> Any:
    """Run `op` for the shapes and types of its results."""
    if op.unsized is True or (op.unsized and op.unsized(*canonical)):
        raise NotImplementedError(f"{op.name}: the shape of its result depends on the values of "
                                  "its arguments, and tensors on meta have none")
    if op.inplace:
        op.functional.direct(*canonical)        # raises what the op would raise
        return canonical[0]
    result = op.direct(*canonical)
    if op.returns is None:
        return to_meta(result)
    results = [to_meta(r) for r in result]
    return op.returns(results) if op.returns in (tuple, list) else op.returns(*results)


def has_meta(canonical: tuple[Any, ...]) -> bool:
    """Is any tensor of a call on `meta`?"""
    for arg in canonical:
        if type(arg) in tensor_types:
            if arg._device is not devices.cpu:
                return True
        elif type(arg) in (tuple, list) and has_meta(tuple(arg)):
            return True
    return False


basis.has_meta, basis.on_meta = has_meta, call
