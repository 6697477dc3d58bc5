"""Views by strides: any window on a tensor's memory, and writes to one.

What an element of such a view is depends on where the tensor's elements lie in memory, its
*geometry* `(size, stride, offset)`. Derivatives go from one geometry to another by way of an
imagined memory. Under `vmap` a window on a slice must lie between the slice's own elements.
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from flambeau.core.op import composite, linear
from flambeau.core.shapes import contiguous_strides, size_of
from flambeau.core.tensor import Tensor, array_offset, array_root, array_strides, basis, plain
from flambeau.dispatch.declaration import op
from flambeau.kernels import views
from flambeau.kernels._extension import compiled

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]


def _geometry(input: Tensor) -> Geometry:
    array = input._array
    if hasattr(input, "_bdim"):             # a slice under vmap
        return array.shape, input.stride(), input.storage_offset()
    if type(input) not in plain:            # a wrapper: its own strides say nothing
        return array.shape, contiguous_strides(array.shape), 0
    return _geometry_of(array)


@compiled("geometry")
def _geometry_of(array: np.ndarray) -> Geometry:
    return array.shape, array_strides(array), array_offset(array) // array.itemsize


def _extent(*geometries: Geometry) -> int:
    """The elements of a memory that holds these windows."""
    return 1 + max([offset + sum([(n - 1) * s for n, s in zip(size, stride)])
                    for size, stride, offset in geometries if 0 not in size], default=0)


def _places(geometry: Geometry) -> np.ndarray:
    """For each element of a window, its place in memory."""
    size, stride, offset = geometry
    index = np.full((), offset, np.int64)
    for n, s in zip(size, stride):
        index = index[..., None] + np.arange(n, dtype=np.int64) * s
    return index.reshape(size)


def _window(memory: np.ndarray, geometry: Geometry) -> np.ndarray:
    size, stride, offset = geometry
    item = memory.itemsize
    return views.strided(memory, size, tuple([s * item for s in stride]), offset * item)


def _one_more(size: int, extent: int, geometry: Geometry) -> Geometry:
    """The windows on `size` memories, one after the other."""
    return (size, *geometry[0]), (extent, *geometry[1]), geometry[2]


# ---- views ---------------------------------------------------------------------------------------


@compiled("window")
def _as_strided(self: np.ndarray, window: Geometry, own: Geometry,
                given: int | None = None) -> np.ndarray:
    size, stride, offset = window
    root, item = array_root(self), self.itemsize
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else offset - 1
    if (last + 1) * item > root.nbytes:
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage "
                           f"offset {offset}, and itemsize {item} requiring a storage size of "
                           f"{(last + 1) * item} are out of bounds for storage of size "
                           f"{root.nbytes}")
    return views.strided(self, size, tuple([s * item for s in stride]),
                         offset * item - array_offset(self))


def _as_strided_batched(size: int, dims: Any, self: Tensor, window: Geometry,
                        own: Geometry, given: int | None) -> Any:
    first, end = window[2], _extent(window)
    if 0 not in window[0] and (first < own[2] or end > _extent(own)):
        raise RuntimeError(
            f"result = tensor.as_strided({list(window[0])}, {list(window[1])}, {first}) can access "
            f"memory outside of `tensor`. `result` can access some memory in range [{first}, "
            f"{end}], but `tensor` can only access some memory in range [{own[2]}, "
            f"{_extent(own)}]. This is not supported inside of vmap, please try to rewrite the "
            "`as_strided` call as a sequence of PyTorch view operations")
    step, whole = self.stride(dims[0]), basis.movedim(self, dims[0], 0)
    return as_strided_of(whole, _one_more(size, step, window), _geometry(whole), given), 0


def _as_strided_tangent(self_t: Tensor, window: Geometry, own: Geometry) -> Tensor:
    """The same window on the tangent: a view, if its memory is like that of the tensor."""
    shift = window[2] - own[2]
    if shift >= 0 and _extent((window[0], window[1], shift)) <= prod(own[0]) and (
            type(self_t) in plain or hasattr(self_t, "_bdim")) and _geometry(self_t)[:2] == own[:2]:
        return _part(self_t, window[0], window[1], shift)
    return by_memory(self_t, own, window, None)


@linear(_as_strided, view=True, method=False, namespace=None, node_name="AsStridedBackward0",
        batch=_as_strided_batched, jvp=_as_strided_tangent, params=("window", "own", "given"),
        shows="given", d_self=lambda grad, window, own: by_memory(grad, window, own, own))
def as_strided_of(input: Tensor, window: Geometry, own: Geometry, given: int | None) -> Any:
    return input, window, own, given


as_strided_of.op.saved_as = {"size": lambda window: tuple(window[0]),
                             "stride": lambda window: tuple(window[1]),
                             "storage_offset": lambda given: given}


def _viewed(input: Tensor, size: Any, stride: Any, storage_offset: int | None) -> Tensor:
    window, own = _checked(input, size, stride, storage_offset)
    return as_strided_of.op.call(input, window, own, storage_offset)


as_strided = op(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
    "Tensor(a)", body=_viewed,
    doc="""A view of `input`'s memory with any size, strides and offset (in elements).

    >>> import flambeau
    >>> flambeau.arange(5).as_strided((2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """)


def _checked(input: Tensor, size: Any, stride: Any, offset: int | None) -> tuple[Geometry, ...]:
    size, stride = size_of((size,)), size_of((stride,))
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got "
                           f"strides: {list(stride)}")
    own = _geometry(input)
    return (size, stride, own[2] if offset is None else offset), own


# ---- derivatives ---------------------------------------------------------------------------------


def _by_memory(self: np.ndarray, source: Geometry, target: Geometry,
               shared: Geometry | None) -> np.ndarray:
    put, taken = _places(source), _places(target)
    start = min(int(put.min(initial=0)), int(taken.min(initial=0)))
    put, taken = put - start, taken - start
    length = _extent(source, target) - start
    if shared == source:
        self = self / np.bincount(put.reshape(-1), minlength=length)[put].astype(self.dtype)
    memory = np.zeros(length, self.dtype)
    if len(np.unique(put)) == put.size:
        memory[put] = self
    else:
        np.add.at(memory, put, self)
    r = memory[taken]
    if shared == target and len(np.unique(taken)) != taken.size:
        r = r / np.bincount(taken.reshape(-1), minlength=length)[taken].astype(self.dtype)
    return r


def _by_memory_batched(size: int, dims: Any, self: Tensor, source: Geometry, target: Geometry,
                       shared: Geometry | None) -> Any:
    extent = _extent(source, target)
    more = [None if g is None else _one_more(size, extent, g) for g in (source, target, shared)]
    return by_memory(basis.movedim(self, dims[0], 0), *more), 0


@linear(_by_memory, method=False, namespace=None, node_name="AsStridedBackwardBackward0",
        batch=_by_memory_batched,
        d_self=lambda grad, source, target, shared: by_memory(grad, target, source, shared))
def by_memory(input: Tensor, source: Geometry, target: Geometry, shared: Any) -> Any:
    """`input` added up into memory as `source` lies there, read as `target` does; of `shared`, one
    of the two, the elements that are one in memory get equal parts."""
    return input, source, target, shared


# ---- writes as new tensors -----------------------------------------------------------------------


def _replaced(self: np.ndarray, src: np.ndarray, window: Geometry, own: Geometry) -> np.ndarray:
    memory = np.empty(_extent(window, own), self.dtype)
    result = _window(memory, own)
    result[...] = self
    _window(memory, window)[...] = src
    return result


def _replaced_batched(size: int, dims: Any, self: Tensor, src: Tensor, window: Geometry,
                      own: Geometry) -> Any:
    self, src = [basis.expand(t, (size, *t._array.shape)) if d is None
                 else basis.movedim(t, d, 0) for t, d in zip((self, src), dims)]
    extent = _extent(window, own)
    return replaced(self, src, _one_more(size, extent, window), _one_more(size, extent, own)), 0


@linear(_replaced, tensors=("self", "src"), method=False, namespace=None,
        node_name="AsStridedScatterBackward0", batch=_replaced_batched,
        d_self=lambda grad, src_shape, window, own: replaced(
            grad, basis.new_zeros(grad, src_shape), window, own),
        d_src=lambda grad, window, own: by_memory(grad, own, window, None))
def replaced(input: Tensor, src: Tensor, window: Geometry, own: Geometry) -> Any:
    """`input` with `src` where `window` lies in its memory, which `own` describes."""
    return input, src, window, own


@composite(method=True)
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any,
                       storage_offset: int | None = None, *, out: Any = None) -> Tensor:
    """A copy of `input` in which the elements that `as_strided` would show are those of `src`."""
    window, own = _checked(input, size, stride, storage_offset)
    if src._array.shape != window[0]:
        raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                           f"{list(src._array.shape)}, slice size = {list(window[0])}")
    if type(input) in plain:
        _as_strided(input._array, window, own)          # is the window inside the memory?
    if src._array.dtype != input._array.dtype:
        src = basis.cast(src, input._array.dtype)
    result = replaced(input, src, window, own)
    return result if out is None else basis.into(out, as_strided_scatter.op, result)


def _part(input: Tensor, size: Any, stride: Any, offset: int) -> Tensor:
    """`as_strided` with an offset that counts from `input`'s first element."""
    return as_strided(input, size, stride, offset + _geometry(input)[2])


def _same_part(input: Tensor, array: np.ndarray, own: np.ndarray) -> Tensor:
    """The part of `input` that `array` is of `own`, an array with the strides of `input`."""
    shift = (array_offset(array) - array_offset(own)) // own.itemsize
    return _part(input, array.shape, array_strides(array), shift)


def _cut_out(grad: Tensor, strides: Any, replay: Any, size: Any, stride: Any,
             offset: int) -> tuple[Tensor, Callable[[Tensor | None], Tensor]]:
    """For the engine: the part of `grad`, the gradient of a base with these strides, that belongs
    to a view; and a function that gives `grad` with other values there."""
    if replay is None and type(grad) not in plain:      # no memory to write to
        own, window = (grad._array.shape, strides, 0), (size, stride, offset)
        part = by_memory(grad, own, window, None)
    else:
        whole = basis.laid_out(grad, strides)
        part = _part(whole, size, stride, offset) if replay is None else replay(whole)

    def put_back(values: Tensor | None) -> Tensor:
        values = basis.zeros_like(part) if values is None else basis.sum_to_size(
            values, part._array.shape)
        if replay is None and type(grad) not in plain:
            return replaced(grad, values, window, own)
        part.copy_(values)
        return whole
    return basis.clone(part), put_back


basis.as_strided, basis.part, basis.cut_out = as_strided, _part, _cut_out
basis.same_part = _same_part
