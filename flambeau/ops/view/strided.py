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

from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.promotion import convert
from flambeau.core.shapes import contiguous_strides
from flambeau.core.tensor import Tensor, array_offset, array_strides, plain_types, wrap
from flambeau.dispatch.declaration import op
from flambeau.kernels.moving import strided as kernels
from flambeau.kernels.moving.strided import extent
from flambeau.kernels.moving.views import copy_into, strided
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.view.conversion import cast, clone
from flambeau.ops.view.copying import laid_out
from flambeau.ops.view.shape import batch_first, movedim, sum_to_size

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]


def geometry(input: Tensor) -> Geometry:
    """Where the elements of a tensor lie in its memory."""
    array = input._array
    if hasattr(input, "_bdim"):             # a slice under vmap
        return array.shape, input.stride(), input.storage_offset()
    if type(input) not in plain_types:            # a wrapper: its own strides say nothing
        return array.shape, contiguous_strides(array.shape), 0
    return kernels.geometry(array)


def _window(size: Any, stride: Any, offset: int | None, own: Geometry) -> Geometry:
    return size, stride, own[2] if offset is None else offset


def _one_more(size: int, step: int, geometry: Geometry) -> Geometry:
    """The windows on `size` memories, one after the other."""
    return (size, *geometry[0]), (step, *geometry[1]), geometry[2]


def _examples(whole: Tensor) -> Geometry:
    """The geometry of the first of the slices of a tensor."""
    size, stride, offset = geometry(whole)
    return size[1:], stride[1:], offset


# ---- views ---------------------------------------------------------------------------------------


def _prepare_as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None
                        ) -> tuple[Any, ...]:
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if len(size) > 64:                  # of NumPy's arrays
        raise RuntimeError("only tensors with up to 64 dims are supported")
    if any(n < 0 for n in size):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and "
                           f"strides={list(stride)}")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got "
                           f"strides: {list(stride)}")
    return input, size, stride, storage_offset


def _as_strided_batched(count: int, dims: Any, self: Tensor, size: Any, stride: Any,
                        storage_offset: int | None) -> Any:
    whole = movedim(self, dims[0], 0)
    own = _examples(whole)
    window = _window(size, stride, storage_offset, own)
    first, end = window[2], extent(window)
    if 0 not in size and (first < own[2] or end > extent(own)):
        raise RuntimeError(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {first}) can access "
            f"memory outside of `tensor`. `result` can access some memory in range [{first}, "
            f"{end}], but `tensor` can only access some memory in range [{own[2]}, "
            f"{extent(own)}]. This is not supported inside of vmap, please try to rewrite the "
            "`as_strided` call as a sequence of PyTorch view operations")
    return as_strided(whole, (count, *size), (whole.stride()[0], *stride), storage_offset), 0


def _as_strided_jvp(self: Tensor, self_t: Tensor, size: Any, stride: Any,
                    storage_offset: int | None) -> Tensor:
    """The same window on the tangent: a view, if its memory is like that of the tensor."""
    own = geometry(self)
    window = _window(size, stride, storage_offset, own)
    shift = window[2] - own[2]
    if shift >= 0 and extent((size, stride, shift)) <= prod(own[0]) and (
            type(self_t) in plain_types or hasattr(self_t,
                                                   "_bdim")) and geometry(self_t)[:2] == own[:2]:
        return strided_window(self_t, size, stride, shift)
    return by_memory(self_t, own, window, None)


as_strided = op(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
    "Tensor(a)",
    kernel=kernels.as_strided, kind="linear", canonical=_prepare_as_strided, kernel_checks=True,
    batch=_as_strided_batched, jvp=_as_strided_jvp,
    d_self=lambda grad, self_geometry, size, stride, storage_offset: _in_geometry(by_memory(
        grad, _window(size, stride, storage_offset, self_geometry), self_geometry, self_geometry),
        self_geometry),
    doc="""A view of `input`'s memory with any size, strides and offset (in elements).

    >>> import flambeau
    >>> flambeau.arange(5).as_strided((2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """)


def _in_geometry(grad: Tensor, own: Geometry) -> Tensor:
    """The gradient of a tensor, in memory as the tensor itself."""
    return grad if own[1] == contiguous_strides(own[0]) else laid_out(grad, own[1])


# ---- derivatives ---------------------------------------------------------------------------------


def _by_memory_batched(size: int, dims: Any, self: Tensor, source: Geometry, target: Geometry,
                       shared: Geometry | None) -> Any:
    step = extent(source, target)
    more = [None if g is None else _one_more(size, step, g) for g in (source, target, shared)]
    return by_memory(movedim(self, dims[0], 0), *more), 0


by_memory = op(
    "by_memory(Tensor self, object source, object target, object shared) -> Tensor",
    kernel=kernels.by_memory, kind="linear", function=False, method=False,
    node="AsStridedBackwardBackward0", batch=_by_memory_batched,
    d_self=lambda grad, source, target, shared: by_memory(grad, target, source, shared),
    doc="""`self` added up into memory as `source` lies there, read as `target` does; of `shared`,
    one of the two, the elements that are one in memory get equal parts.""")

# ---- writes as new tensors -----------------------------------------------------------------------


def _replaced_batched(size: int, dims: Any, self: Tensor, src: Tensor, window: Geometry,
                      own: Geometry) -> Any:
    self, src = [batch_first(t, d, size) for t, d in zip((self, src), dims)]
    step = extent(window, own)
    return replaced(self, src, _one_more(size, step, window), _one_more(size, step, own)), 0


replaced = op(
    "replaced(Tensor self, Tensor src, object window, object own) -> Tensor",
    kernel=kernels.replaced, kind="linear", function=False, method=False,
    node="AsStridedScatterBackward0", batch=_replaced_batched,
    d_self=lambda grad, src_shape, window, own: replaced(
        grad, new_zeros(grad, src_shape), window, own),
    d_src=lambda grad, window, own: by_memory(grad, own, window, None),
    doc="`self` with `src` where `window` lies in its memory, which `own` describes.")


def _prepare_as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any,
                                storage_offset: int | None
                                ) -> tuple[Any, ...]:
    size, stride = _prepare_as_strided(input, size, stride, storage_offset)[1:3]
    if src._array.shape != size:
        kernels.as_strided(input._array, size, stride, storage_offset)  # is there such a slice?
        raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                           f"{list(src._array.shape)}, slice size = {list(size)}")
    if src._array.dtype != input._array.dtype:
        src = cast(src, input._array.dtype)
    return input, src, size, stride, storage_offset


def _as_strided_scatter_batched(count: int, dims: Any, self: Tensor, src: Tensor, size: Any,
                                stride: Any, storage_offset: int | None) -> Any:
    own = geometry(self) if dims[0] is None else _examples(movedim(self, dims[0], 0))
    return _replaced_batched(count, dims, self, src, _window(size, stride, storage_offset, own),
                             own)


as_strided_scatter = op(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, "
    "SymInt? storage_offset=None) -> Tensor",
    kernel=kernels.as_strided_scatter, kind="linear", canonical=_prepare_as_strided_scatter,
    kernel_checks=True, batch=_as_strided_scatter_batched, out=False,
    d_self=lambda grad, src_shape, self_geometry, size, stride, storage_offset: replaced(
        grad, new_zeros(grad, src_shape),
        _window(size, stride, storage_offset, self_geometry), self_geometry),
    d_src=lambda grad, self_geometry, size, stride, storage_offset: laid_out(by_memory(
        grad, self_geometry, _window(size, stride, storage_offset, self_geometry), None), stride),
    doc="A copy of `input` in which the elements that `as_strided` would show are those of `src`.")


def strided_window(input: Tensor, size: Any, stride: Any, offset: int) -> Tensor:
    """`as_strided` with an offset that counts from `input`'s first element."""
    return as_strided(input, size, stride, offset + geometry(input)[2])


def same_part(input: Tensor, array: np.ndarray, own: np.ndarray) -> Tensor:
    """The part of `input` that `array` is of `own`, an array with the strides of `input`."""
    shift = (array_offset(array) - array_offset(own)) // own.itemsize
    return strided_window(input, array.shape, array_strides(array), shift)


def cut_out(grad: Tensor, strides: Any, replay: Any, size: Any, stride: Any,
            offset: int) -> tuple[Tensor, Callable[[Tensor | None], Tensor]]:
    """For the engine: the part of `grad`, the gradient of a base with these strides, that belongs
    to a view; and a function that gives `grad` with other values there."""
    is_plain = type(grad) in plain_types
    if replay is None and not is_plain:                 # no memory to write to
        own, window = (grad._array.shape, strides, 0), (size, stride, offset)
        part = by_memory(grad, own, window, None)
    else:
        whole = laid_out(grad, strides)
        if is_plain and replay is None and not grad_enabled() and not interceptors:
            return _cut_array(whole, size, stride, offset)
        part = strided_window(whole, size, stride, offset) if replay is None else replay(whole)

    def put_back(values: Tensor | None) -> Tensor:
        values = zeros_like(part) if values is None else sum_to_size(
            values, part._array.shape)
        if replay is None and not is_plain:
            return replaced(grad, values, window, own)
        part.copy_(values)
        return whole
    return clone(part), put_back


def _cut_array(whole: Tensor, size: Any, stride: Any, offset: int
               ) -> tuple[Tensor, Callable[[Tensor | None], Tensor]]:
    """The same of a copy that nobody watches: its memory is written to at once."""
    array = whole._array
    item = array.itemsize
    part = strided(array, size, tuple([s * item for s in stride]), offset * item)

    def put_back(values: Tensor | None) -> Tensor:
        if values is None:
            part.fill(0)
        else:
            if values._array.shape != part.shape:
                values = sum_to_size(values, part.shape)
            copy_into(part, convert(values._array, part.dtype))
        return whole
    return wrap(part.copy()), put_back
