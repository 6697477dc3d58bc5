"""Aliases, and copies into other tensors or with other strides."""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau._support.settings import warn_of_lost_parts
from flambeau._support.source_locations import bump
from flambeau.core import copy_on_write
from flambeau.core.devices import cpu
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.promotion import convert
from flambeau.core.shapes import (
    broadcast_shapes,
    contiguous_strides,
    is_expandable_to,
    written_shape_error,
)
from flambeau.core.tensor import Tensor, plain_types, wrap
from flambeau.core.type_info import channels_last, channels_last_3d, contiguous_format
from flambeau.core.views import check_inplace
from flambeau.dispatch.declaration import op
from flambeau.dispatch.members import member
from flambeau.kernels.moving import views as kernels
from flambeau.kernels.moving.layouts import convolves_channels_last, has_channels_last
from flambeau.ops.inplace import make_inplace
from flambeau.ops.overlap import share_memory
from flambeau.ops.view.conversion import clone, contiguous, copy_in, detach
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import expand_to, movedim, permute

# ---- aliases -------------------------------------------------------------------------------------


alias = op(
    "alias(Tensor(a) self) -> Tensor(a)", kernel=lambda self: self[...], kind="linear",
    method=False, d_self=lambda grad: grad,
    batch=lambda size, dims, self: (alias(self), dims[0]),
    doc="The same values on the same memory, as a view.")


graph_alias = op(
    "graph_alias(Tensor self) -> Tensor", kernel=lambda self: self, kind="linear", function=False,
    method=False, node="AliasBackward0", d_self=lambda grad: grad,
    batch=lambda size, dims, self: (graph_alias(self), dims[0]),
    doc="The same values as a point of its own in the graph.")

# ---- in-place copy -------------------------------------------------------------------------------


def _copy_kernel(self: np.ndarray, src: np.ndarray) -> np.ndarray:
    result = np.empty_like(self)
    warn_of_lost_parts(src, self.dtype)
    kernels.copy_into(result, convert(src, self.dtype))
    return result


def _prepare_copy(self: Tensor, src: Tensor) -> Any:
    if not is_expandable_to(src._array.shape, self._array.shape):
        if type(self) in plain_types:
            check_inplace(self, src.requires_grad, apart=False)     # autograd's refusals come first
        raise _shape_error(self._array.shape, src._array.shape)
    return self, src


def _shape_error(own: tuple[int, ...], given: tuple[int, ...]) -> RuntimeError:
    return written_shape_error(own, broadcast_shapes(own, given))


copy = op(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", kernel=_copy_kernel,
    kind="linear", overlap="element", canonical=_prepare_copy, unused="non_blocking",
    function=False, method=False, node="CopyBackwards", d_self=0, d_src=lambda grad: grad,
    batch=lambda size, dims, self, src: _copy_batched(dims, self, src),
    doc="`src` in the shape and type of `self`.")
copy.op.Backward.name = lambda self: "torch::autograd::CopyBackwards"


def _copy_batched(dims: Any, self: Tensor, src: Tensor) -> Any:
    a = self if dims[0] is None else movedim(self, dims[0], 0)
    b = src if dims[1] is None else movedim(src, dims[1], 0)
    if dims[0] is None:
        a = expand_to(a, (b._array.shape[0], *a._array.shape))
    if dims[1] is not None and b._array.ndim < a._array.ndim:
        shape = b._array.shape
        b = reshape(b, (shape[0], *(1,) * (a._array.ndim - b._array.ndim), *shape[1:]))
    return copy(a, b), 0


_write = make_inplace(copy.op).call


@member("copy_(Tensor(a!) self, Tensor other, bool non_blocking=False) -> Tensor(a!)",
        deprecated=("copy_(Tensor(a!) self, Tensor other, bool async=False) -> Tensor(a!)",),
        function=False, numbers=True)
def copy_(self: Tensor, other: Any, non_blocking: bool) -> Tensor:
    """Write the values of `other`, broadcast and cast, into this tensor; returns the tensor."""
    src = other if isinstance(other, Tensor) else wrap(np.asarray(other))
    if src._device is not cpu and self._device is cpu:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if interceptors or type(self) not in plain_types or type(src) not in plain_types \
            or self._inference or (
                grad_enabled() and (self._edge is not None or src._edge is not None)):
        return _write(*_prepare_copy(self, src))
    target, source = self._array, src._array
    if not target.flags.writeable or source.ndim > target.ndim or share_memory(target, source):
        return _write(*_prepare_copy(self, src))
    try:
        if source.dtype is not target.dtype:
            warn_of_lost_parts(source, target.dtype)
            source = convert(source, target.dtype)
        kernels.copy_into(target, source)
    except ValueError:
        raise _shape_error(target.shape, source.shape) from None
    bump(self)
    return self


copy_.twin.op, copy.op.inplace_op.published = copy.op.inplace_op, copy_


def with_strides(input: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The values of `input` laid out with other, dense strides."""
    shape = input._array.shape
    if strides == contiguous_strides(shape):
        return contiguous(input)
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], i))
    back = [0] * len(order)
    for position, axis in enumerate(order):
        back[axis] = position
    return permute(contiguous(permute(input, order)), back)


def laid_out(input: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A copy of `input` with these strides, also where they leave gaps."""
    if interceptors or type(input) not in plain_types:
        return clone(with_strides(input, strides))
    return copy_in(input, contiguous_format if strides == contiguous_strides(input._array.shape)
                   else strides)


# ---- layouts -------------------------------------------------------------------------------------


def channels_swapped(grad: Tensor, sizes: list[int]) -> Tensor:
    """A second derivative by the weight of a convolution, in memory with its first two dimensions
    swapped: PyTorch finds those of real numbers by a convolution whose result, of these sizes or
    larger, lies so; the weight's is the first part of it."""
    if grad._array.dtype.kind == "c":
        return grad
    own = grad._array.shape[2:]
    more = [max(n - m, 0) for n, m in zip(sizes, own)]
    swapped = grad.transpose(0, 1)
    if not any(more):
        return swapped.clone(memory_format=contiguous_format).transpose(0, 1)
    swapped = flambeau.constant_pad_nd(swapped, [n for m in reversed(more) for n in (0, m)])
    for d, n in enumerate(own, 2):
        swapped = swapped.narrow(d, 0, n)
    return swapped.transpose(0, 1)


def in_layout_of(gradient: Tensor, *inputs: Tensor) -> Tensor:
    """The gradient, with its channels last in memory if those of an input are."""
    if type(gradient) in plain_types and any(
            type(x) in plain_types and has_channels_last(x._array) for x in inputs
    ) and not has_channels_last(gradient._array):
        return copy_in(gradient, (channels_last, channels_last_3d)[gradient._array.ndim - 4])
    return gradient


def in_layout_of_factors(gradient: Tensor, *factors: Tensor) -> Tensor:
    """The gradient of a convolution of real numbers, with its channels last if a factor's are."""
    array = gradient._array
    return in_layout_of(gradient, *factors) if (
        array.dtype.kind not in "cW" and convolves_channels_last(array)) else gradient


def copy_like(grad: Tensor, leaf: Tensor) -> Tensor:
    """A copy of `grad` outside the graph, laid out as `leaf` is if that is dense."""
    if type(grad) not in plain_types:
        return detach(clone(grad))
    source, own = grad._array, leaf._array
    target = kernels.empty_like(own, source.dtype) if kernels.is_dense(own) \
        else np.empty(own.shape, source.dtype)
    target[...] = source
    return wrap(target)


# ---- what lies where -----------------------------------------------------------------------------

@member("_debug_has_internal_overlap(Tensor self) -> int", method=False)
def _debug_has_internal_overlap(self: Tensor) -> int:
    """Are several elements one in memory? 0: no; 1: yes; 2: that would be too much to find out."""
    array = self._array
    if kernels.is_dense(array):
        return 0
    return 1 if any(n > 1 and not s for n, s in zip(array.shape, array.strides)) else 2


# ---- copies that wait for a write ----------------------------------------------------------------

_lazy_clone = op(
    "_lazy_clone(Tensor self) -> Tensor", kernel=copy_on_write.lazy_clone, kind="linear", out=False,
    explicit=True, d_self=lambda grad: grad, batch=lambda size, dims, self: (
        _lazy_clone.op.call(self), dims[0]),
    doc="A clone whose memory is that of the tensor until one of the two is written to.")


@op("_test_parallel_materialize(Tensor self, int num_parallel, bool skip_first=False) -> Tensor",
    method=False, out=False, explicit=True)
def _test_parallel_materialize(self: Tensor, num_parallel: int, skip_first: bool) -> Tensor:
    """The tensor, unless writing to it in a loop over `num_parallel` steps would have to copy its
    memory: threads that do so at once would race. With `skip_first` the thread that has no step but
    the first does not write."""
    step = -(-num_parallel // max(min(flambeau.get_num_threads(), num_parallel), 1))
    writers = [first for first in range(0, num_parallel, step)
               if not (skip_first and first == 0 and min(step, num_parallel) == 1)]
    if writers and copy_on_write.is_shared(self._array):
        raise RuntimeError("Materializing a storage in the loop function of at::parallel_for is "
                           "forbidden")
    return self


__all__ = ["alias", "copy", "copy_"]
