"""Gradients that arrive at leaves: what becomes of the first, and of one that comes later."""
from __future__ import annotations

from flambeau.core import type_info
from flambeau.core.modes import grad_layouts, intercepts_ops
from flambeau.core.tensor import Tensor, plain_types
from flambeau.kernels.moving.views import is_dense
from flambeau.ops.factory.create import empty_like
from flambeau.ops.pointwise.arithmetic import add
from flambeau.ops.sparse.tensors import SparseTensor, is_sparse, make_sparse, without_history
from flambeau.ops.view.conversion import clone, detach
from flambeau.ops.view.copying import copy


def first_gradient(leaf: Tensor, grad: Tensor, unshared: bool, create_graph: bool) -> Tensor:
    """What becomes the gradient of a leaf that had none: `grad` itself if nobody else holds it and
    it lies in memory as the leaf does, else a copy that does."""
    if is_sparse(grad):
        return clone(grad) if create_graph else _without_graph(grad, unshared)
    if create_graph and type(grad) in plain_types and not intercepts_ops():
        return copy(empty_like(leaf, dtype=grad.dtype), grad)
    own = leaf._array
    if unshared and not create_graph and (own.strides == grad._array.strides
                                          or not grad_layouts.get()):
        return detach(grad)
    if not is_dense(own) or grad.layout is not type_info.strided:
        kept = clone(grad, memory_format=type_info.contiguous_format)
        return kept if create_graph else detach(kept)
    return grad.new_empty_strided(leaf.shape, leaf.stride(), dtype=grad.dtype, layout=grad.layout,
                                  device=grad.device).copy_(grad)


def _without_graph(grad: SparseTensor, unshared: bool) -> Tensor:
    """A sparse gradient as a leaf keeps it: its own arrays if nobody else holds it, else copies."""
    parts = [*grad._where, grad._data]
    if unshared and all(p.flags.c_contiguous for p in parts):
        return without_history(grad)
    return make_sparse(grad._layout, tuple(p.copy() for p in grad._where), grad._data.copy(),
                       grad._array.shape, grad._coalesced)


def later_gradient(old: Tensor, grad: Tensor, create_graph: bool) -> Tensor:
    """The gradient of a leaf after another has arrived: written in place where torch does."""
    sparse = is_sparse(old)
    if sparse and not is_sparse(grad):
        return add(grad, old)
    if create_graph or not (sparse or is_sparse(grad)):
        return add(old, grad)
    return old.add_(grad)


__all__ = ["first_gradient", "later_gradient"]
