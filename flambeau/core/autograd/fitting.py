"""Gradients as the edges that they arrive at expect them: of their shape and type."""
from __future__ import annotations

from typing import Any

from flambeau.core import late_bound
from flambeau.core.shapes import is_expandable_to
from flambeau.core.tensor import tensor_types


def validate_grad_for(edge: Any, grad: Any, node: Any, position: int) -> Any:
    """A gradient as it may arrive at an edge, which may be none, or a leaf."""
    if edge is None or grad is None:
        return grad
    if type(edge) not in tensor_types:
        return fit(grad, edge.shape, edge.dtype, node, position)
    own, wanted = edge._array, edge._hooks and edge._hooks.grad_dtype
    if wanted is None:
        return fit(grad, own.shape, own.dtype, node, position)
    array_type = grad._array.dtype if wanted == "any" else wanted.numpy
    return fit(grad, own.shape, array_type, node, position)


def fit(grad: Any, shape: tuple[int, ...], array_type: Any, node: Any, position: int) -> Any:
    """`grad` summed and cast to what the edge expects: rules need not mention broadcasting."""
    found = grad._array
    if found.shape != shape:
        if not is_expandable_to(shape, found.shape):
            name = node.name() if node is not None else "backward"
            raise RuntimeError(f"Function {name} returned an invalid gradient at index {position} "
                               f"- got {list(found.shape)} but expected shape compatible with "
                               f"{list(shape)}")
        if found.dtype.kind in "cW" and array_type.kind not in "cW":
            grad = late_bound.real_part(grad)       # what is summed up lies by rows
        grad = late_bound.sum_to_size(grad, shape)
    if grad._array.dtype != array_type:
        if grad._array.dtype.kind in "cW" and array_type.kind not in "cW":
            grad = late_bound.real_part(grad)
        if grad._array.dtype != array_type:
            grad = late_bound.cast(grad, array_type)
    return grad
