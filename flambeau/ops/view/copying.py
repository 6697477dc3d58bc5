"""Aliases, and copies into other tensors or with other strides."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.source_locations import bump
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.op import checked_arguments, composite, linear, primitive
from flambeau.core.promotion import convert
from flambeau.core.shapes import contiguous_strides
from flambeau.core.tensor import Tensor, basis, plain, wrap
from flambeau.core.type_info import contiguous_format
from flambeau.dispatch.declaration import op
from flambeau.kernels import views as kernels
from flambeau.ops.overlap import is_dense, share_memory
from flambeau.ops.view.conversion import clone, contiguous, copy_in

# ---- aliases -------------------------------------------------------------------------------------


alias = op(
    "alias(Tensor(a) self) -> Tensor(a)", kernel=lambda self: self[...], kind="linear",
    method=False, d_self=lambda grad: grad,
    batch=lambda size, dims, self: (alias(self), dims[0]),
    doc="The same values on the same memory, as a view.")


@linear(lambda self: self, d_self=lambda grad: grad, namespace=None, method=False,
        node_name="AliasBackward0", batch=lambda size, dims, self: (graph_alias(self), dims[0]))
def graph_alias(input: Tensor) -> Any:
    """The same values as a point of its own in the graph."""
    return (input,)


# ---- in-place copy -------------------------------------------------------------------------------


def _copied_over(self: np.ndarray, src: np.ndarray) -> np.ndarray:
    result = np.empty_like(self)
    kernels.copy_into(result, convert(src, self.dtype))
    return result


@primitive(_copied_over, tensors=("self", "src"), d_self=0, d_src=lambda grad: grad,
           kind="linear", namespace=None, method=False, inplace=True, node_name="CopyBackwards",
           batch=lambda size, dims, self, src: _copy_batched(dims, self, src))
def copy(input: Tensor, src: Any, non_blocking: bool = False) -> Any:
    """`src` in the shape and type of `input`."""
    if isinstance(src, (int, float, complex)):
        src = wrap(np.asarray(src))
    if not isinstance(src, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not "
                        f"{type(src).__name__}")
    from flambeau.core.shapes import is_expandable_to
    if not is_expandable_to(src._array.shape, input._array.shape):
        a, b = input._array.shape, src._array.shape
        raise RuntimeError(f"output with shape {list(a)} doesn't match the broadcast shape "
                           f"{list(b)}" if len(b) > len(a) else _copy_message(a, b))
    return input, src


copy.op.Backward.name = lambda self: "torch::autograd::CopyBackwards"


def _copy_message(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    for i in range(1, len(b) + 1):
        if b[-i] not in (1, a[-i]):
            return (f"The size of tensor a ({a[-i]}) must match the size of tensor b ({b[-i]}) at "
                    f"non-singleton dimension {len(a) - i}")
    return f"shape {list(b)} cannot be copied into {list(a)}"


def _copy_batched(dims: Any, self: Tensor, src: Tensor) -> Any:
    a = self if dims[0] is None else basis.movedim(self, dims[0], 0)
    b = src if dims[1] is None else basis.movedim(src, dims[1], 0)
    if dims[0] is None:
        a = basis.expand(a, (b._array.shape[0], *a._array.shape))
    if dims[1] is not None and b._array.ndim < a._array.ndim:
        shape = b._array.shape
        b = basis.reshape(b, (shape[0], *(1,) * (a._array.ndim - b._array.ndim), *shape[1:]))
    return copy(a, b), 0


_copy_slowly = Tensor.copy_


def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Write the values of `src`, broadcast and cast, into this tensor; returns the tensor."""
    if interceptors or type(self) not in plain or type(src) not in plain or self._inference \
            or (grad_enabled() and (self._edge is not None or src._edge is not None)):
        return _copy_slowly(self, src)
    target, source = self._array, src._array
    if share_memory(target, source) or source.ndim > target.ndim:
        return _copy_slowly(self, src)
    try:
        kernels.copy_into(target, source if source.dtype is target.dtype
                          else convert(source, target.dtype))
    except ValueError:
        raise RuntimeError(_copy_message(target.shape, source.shape)) from None
    bump(self)
    return self


copy_.op = _copy_slowly.op
Tensor.copy_ = copy_ = checked_arguments(copy_)
copy_.op.published = Tensor.copy_


@composite(namespace=None, method=False)
def with_strides(input: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The values of `input` laid out with other, dense strides."""
    shape = input._array.shape
    if strides == contiguous_strides(shape):
        return contiguous(input)
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], i))
    back = [0] * len(order)
    for position, axis in enumerate(order):
        back[axis] = position
    return basis.permute(contiguous(basis.permute(input, order)), back)


def laid_out(input: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A copy of `input` with these strides, also where they leave gaps."""
    if type(input) not in plain:
        return clone(with_strides(input, strides))
    return copy_in(input, contiguous_format if strides == contiguous_strides(input._array.shape)
                   else strides)


# ---- layouts -------------------------------------------------------------------------------------


def copy_like(grad: Tensor, leaf: Tensor) -> Tensor:
    """A copy of `grad` outside the graph, laid out as `leaf` is if that is dense."""
    if type(grad) not in plain:
        return basis.detach(basis.clone(grad))
    source, own = grad._array, leaf._array
    target = np.empty_like(own, dtype=source.dtype) if is_dense(own) \
        else np.empty(own.shape, source.dtype)
    target[...] = source
    return wrap(target)


basis.copy_like = copy_like
basis.copy = copy
basis.alias, basis.graph_alias, basis.with_strides = alias, graph_alias, with_strides
basis.laid_out = laid_out
basis.contiguous_strides = contiguous_strides
__all__ = ["alias", "copy", "copy_"]
