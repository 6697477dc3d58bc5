"""Views by integers, slices, None and `...`: the part of `x[index]` that copies nothing."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau._support.scopes import within
from flambeau.core.modes import grad_mode
from flambeau.core.tensor import Tensor, alias, gradient_edge
from flambeau.dispatch.declaration import AtenForm, op
from flambeau.kernels._extension import compiled
from flambeau.kernels.moving import views
from flambeau.ops.indexing.parsing import is_whole
from flambeau.ops.view.shape import movedim, select, squeeze_dims, unsqueeze

# ---- as modes that look below autograd see them --------------------------------------------------

END = 2**63 - 1


def _is_all(item: Any) -> bool:
    return type(item) is slice and item.start is None and item.stop is None \
        and item.step in (None, 1)


def _items_by_dim(index: Any, ndim: int) -> list[tuple[int, Any]]:
    """The items of a basic index that change anything, each with the dimension at which it finds
    its own, the items before it having been applied."""
    used = sum(type(i) in (int, slice) for i in index)
    found, dim = [], 0
    for item in index:
        if item is Ellipsis:
            dim += ndim - used
            continue
        if not _is_all(item):
            found.append((dim, item))
        dim += type(item) is not int
    return found


def as_single_views(self: Tensor, index: Any) -> Any:
    """A basic index as calls of `select`, `slice` and `unsqueeze`."""
    spots = _items_by_dim(index if type(index) is tuple else (index, ...), self.ndim)
    if not spots or (len(spots) == 1 and type(spots[0][1]) is slice):
        return NotImplemented
    for dim, item in spots:
        if type(item) is int:
            self = select(self, dim, item)
        elif item is None:
            self = unsqueeze(self, dim)
        else:
            self = take_slice(self, ((slice(None),) * dim) + (item, ...))
    return self


def slice_at(index: Any, ndim: int) -> tuple[Any, ...] | None:
    spots = _items_by_dim(index, ndim)
    if not spots and ndim and any(type(item) is slice for item in index):
        spots = [(0, slice(None))]
    if len(spots) != 1 or type(spots[0][1]) is not slice:
        return None
    dim, item = spots[0]
    return (dim, item.start or 0, END if item.stop is None else item.stop,
            1 if item.step is None else item.step)


def cut(self: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    end = None if end is None or end >= END else end
    return take_slice(self, (slice(None),) * (dim % self.ndim) + (slice(start, end, step), ...))


def put_back(grad: Tensor, shape: Any, dim: int, start: int, end: int, step: int) -> Tensor:
    return slice_backward(grad, tuple(shape), (slice(None),) * (dim % len(shape)) + (
        slice(start, None if end >= END else end, step), ...))


# ---- basic indices: a view -----------------------------------------------------------------------


def _slice_backward_kernel(self: np.ndarray, shape: tuple[int, ...], index: Any) -> np.ndarray:
    r = np.zeros(shape, self.dtype)
    r[index] = self
    return r


slice_backward = op(
    "slice_backward(Tensor self, SymInt[] shape, object index) -> Tensor",
    kernel=_slice_backward_kernel, kind="linear", function=False, method=False, sizes="shape",
    d_self=lambda grad, index: basic_view(grad, index),
    batch=lambda size, dims, self, shape, index: (
        slice_backward(movedim(self, dims[0], 0), (size, *shape), (slice(None), *index)), 0),
    aten=(AtenForm("slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, "
                   "SymInt start, SymInt end, SymInt step) -> Tensor",
                   lambda self, shape, index: (found := slice_at(index, len(shape))) and (
                       self, tuple(shape), *found), run=put_back),),
    doc="Zeros of a shape with `self` at an index.")


@compiled("basic_view")
def _basic_view_kernel(self: np.ndarray, index: tuple[Any, ...]) -> np.ndarray:
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


def _view_backward(grad: Tensor, self_shape: tuple[int, ...], index: tuple[Any, ...]) -> Tensor:
    return slice_backward(grad, self_shape, index)


def _view_backward_as_view(grad: Tensor, self_shape: tuple[int, ...],
                           index: tuple[Any, ...]) -> Tensor:
    """The gradient of a view; one that shows everything has it as a view too."""
    shape = self_shape
    if grad._array.size != prod(shape) or any(type(item) is int for item in index):
        return slice_backward(grad, shape, index)
    if None not in index:
        return grad
    left = len(shape) - sum([item is not None and item is not Ellipsis for item in index])
    dims, dim = [], 0
    for item in index:
        if item is None:
            dims.append(dim)
        dim += left if item is Ellipsis else 1
    return squeeze_dims(grad, tuple(dims))


def _declare_view(kind: str, *shown: AtenForm) -> Any:
    """The view op of basic indices, under the name that torch's node for the last of them has."""
    take = op(f"basic_{kind.lower()}(Tensor(a) self, object index) -> Tensor(a)",
              kernel=_basic_view_kernel,
              kind="linear", function=False, method=False, node=f"{kind}Backward0",
              d_self=_view_backward if kind in ("Slice", "Select") else _view_backward_as_view,
              batch=lambda size, dims, self, index: (
                  basic_view(movedim(self, dims[0], 0), (slice(None), *index)), 0),
              aten=shown, aten_calls=None if kind == "Alias" else as_single_views)
    take.op.Backward.unfold = lambda node: _one_by_one(node)
    return take.op.call


take_first = op(
    "select_first(Tensor(a) self, int index) -> Tensor(a)",
    kernel=lambda self, index: views.select(self, 0, index), kind="linear", function=False,
    method=False, node="SelectBackward0",
    d_self=lambda grad, self_shape, index: slice_backward(grad, self_shape, (index, ...)),
    batch=lambda size, dims, self, index: (
        basic_view(movedim(self, dims[0], 0), (slice(None), index, ...)), 0),
    aten_calls=as_single_views, doc="The slice at `index` of the first dimension.").op.call
_select, _unsqueeze = _declare_view("Select"), _declare_view("Unsqueeze")
take_slice = _slice = _declare_view("Slice", AtenForm(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
    "-> Tensor(a)", lambda self, index: (found := slice_at(index, self.ndim)) and (self, *found),
    run=cut))
_alias = _declare_view("Alias", AtenForm("alias(Tensor(a) self) -> Tensor(a)",
                                         lambda self: (self,)))


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
    """The last node of the graph that PyTorch has of a view by several indices: each makes one."""
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
    return gradient_edge(seen)
