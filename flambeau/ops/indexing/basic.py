"""Views by integers, slices, None and `...`: the part of `x[index]` that copies nothing."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.scopes import within
from flambeau.core.modes import grad_mode
from flambeau.core.op import linear
from flambeau.core.tensor import Tensor, alias
from flambeau.kernels import views
from flambeau.kernels._extension import compiled
from flambeau.ops.indexing.parsing import is_whole
from flambeau.ops.node_names import become, can_unfold
from flambeau.ops.view.shape import movedim

# ---- basic indices: a view -----------------------------------------------------------------------


def _scatter_basic(self: np.ndarray, shape: tuple[int, ...], index: Any) -> np.ndarray:
    r = np.zeros(shape, self.dtype)
    r[index] = self
    return r


@linear(_scatter_basic, method=False, namespace=None, name="slice_backward", shapes="shape",
        d_self=lambda grad, index: basic_view(grad, index),
        batch=lambda size, dims, self, shape, index: (
            slice_backward(movedim(self, dims[0], 0), (size, *shape), (slice(None), *index)), 0))
def slice_backward(input: Tensor, shape: tuple[int, ...], index: Any) -> Any:
    """Zeros of a shape with `input` at an index."""
    return input, shape, index


@compiled("basic_view")
def _basic(self: np.ndarray, index: tuple[Any, ...]) -> np.ndarray:
    """An index is applied from left to right: a dimension that None adds steps over what follows
    it then."""
    shape: list[int] = []
    strides: list[int] = []
    offset = dim = 0
    left = self.ndim - sum([item is not None and item is not Ellipsis for item in index])
    for item in index:
        if item is Ellipsis:
            shape += self.shape[dim:dim + left]
            strides += self.strides[dim:dim + left]
            dim, left = dim + left, 0
            continue
        n, step = (self.shape[dim], self.strides[dim]) if dim < self.ndim else (1, self.itemsize)
        if item is None:
            shape.append(1), strides.append(n * step)
            continue
        dim += 1
        if type(item) is slice:
            start, stop, by = item.indices(n)
            shape.append(len(range(start, stop, by))), strides.append(step * by)
            offset += start * step
        elif -n <= item < n:
            offset += (item + n if item < 0 else item) * step
        else:
            raise IndexError(f"index {item} is out of bounds")
    found = self[index]
    if found.size and None not in index:
        return found
    return views.strided(self, tuple(shape), tuple(strides), offset)


def _declare_view(kind: str) -> Any:
    """The view op of basic indices, under the name that torch's node for the last of them has."""
    @linear(_basic, params=("index",), view=True, method=False, namespace=None,
            name=f"basic_{kind.lower()}", node_name=f"{kind}Backward0",
            d_self=lambda grad, self_shape, index: slice_backward(grad, self_shape, index),
            batch=lambda size, dims, self, index: (
                basic_view(movedim(self, dims[0], 0), (slice(None), *index)), 0))
    def take(input: Tensor, index: Any) -> Any:
        return input, index
    take.op.Backward.unfold = lambda node: _one_by_one(node)
    return take.op.call


@linear(lambda self, index: views.select(self, 0, index), view=True, method=False, namespace=None,
        name="select_first", node_name="SelectBackward0",
        d_self=lambda grad, self_shape, index: slice_backward(grad, self_shape, (index, ...)),
        batch=lambda size, dims, self, index: (
            basic_view(movedim(self, dims[0], 0), (slice(None), index, ...)), 0))
def select_first(input: Tensor, index: int) -> Any:
    """The slice at `index` of the first dimension."""
    return input, index


take_first = select_first.op.call
_select, _slice, _unsqueeze, _alias = (_declare_view(k) for k in (
    "Select", "Slice", "Unsqueeze", "Alias"))
take_slice = _slice


_WHOLE = slice(None)


def basic_view(input: Tensor, index: tuple[Any, ...], alone: bool = False) -> Tensor:
    """The view that a tuple of integers, slices, None and `...` names; `alone`, if its one slice
    counts although it is all there is."""
    take, dim = _alias, 0
    shape = input._array.shape
    left = len(shape) - sum([item is not None and item is not Ellipsis for item in index])
    for item in index:
        if item is Ellipsis:
            dim, left = dim + left, 0
        elif item is None:
            take = _unsqueeze
        else:
            if type(item) is int:
                take = _select
            elif alone or not is_whole(item, shape[dim]):
                take = _slice
            dim += 1
    return take(input, index)


def _one_by_one(node: Any) -> Any:
    """The graph that PyTorch shows of a view by several indices: each is a view of its own."""
    if not can_unfold(node):
        return node
    (edge,), (shape, index) = node.edges, node.saved
    steps, dim, at = [], 0, 0               # the next dimension of the result, and of the source
    for item in index:
        if item is Ellipsis:
            left = len(shape) - sum([type(i) in (int, slice) for i in index])
            dim, at = dim + left, at + left
            continue
        if type(item) is not slice or not is_whole(item, shape[at]):
            steps.append((*(slice(None),) * dim, item, Ellipsis))
        dim, at = dim + (type(item) is not int), at + (item is not None)
    if len(steps) < 2:
        return node
    seen = alias(np.broadcast_to(np.zeros((), node.dtype), shape), Tensor)
    seen._edge = edge
    for step in steps:
        seen = within(grad_mode, True, basic_view, seen, step, True)
    return become(node, seen)
