"""The same elements in another shape: `view`, `reshape`, `flatten` and their kin.

A view looks at its argument's memory; `reshape` copies where strides do not allow that.
"""
from __future__ import annotations

from math import prod
from typing import Any

from flambeau._support.c_functions import type_name as type_name_of
from flambeau.core.dtypes import as_numpy_dtype, dtype
from flambeau.core.op import table
from flambeau.core.promotion import type_name
from flambeau.core.shapes import size_of, wrap_dim
from flambeau.core.tensor import Tensor, plain_types
from flambeau.dispatch.declaration import AtenForm, op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.moving import views
from flambeau.kernels.pointwise.complex import reinterpreted
from flambeau.ops.view.conversion import contiguous, copy_in

# ---- view and reshape ----------------------------------------------------------------------------


def infer_size(shape: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """`shape` with its one -1, if any, replaced so that it has `numel` elements."""
    if -1 in shape:
        if shape.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred")
        rest = prod([n for n in shape if n != -1])
        if rest < 0:
            raise RuntimeError(f"invalid shape dimension {min(shape)}")
        if rest == 0 and numel == 0:
            raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} "
                               "because the unspecified dimension size -1 can be any value and is "
                               "ambiguous")
        if rest and numel % rest == 0:
            return tuple([numel // rest if n == -1 else n for n in shape])
    elif prod(shape) == numel and (not shape or min(shape) >= 0):
        return shape
    negative = [n for n in shape if n < -1]
    if negative:
        raise RuntimeError(f"invalid shape dimension {negative[0]} at index "
                           f"{shape.index(negative[0])} of shape {list(shape)}")
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


def _prepare_view(input: Tensor, size: Any) -> tuple[Tensor, tuple[int, ...]]:
    return input, infer_size(size_of((size,)), input._array.size)


view = op(
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    kernel=views.view, kind="linear", sizes="size", canonical=_prepare_view, kernel_checks=True,
    function=False, d_self=lambda grad, self_shape: reshape_to(grad, self_shape),
    doc="""The same memory seen with another shape (one extent may be -1), or another dtype.

    RuntimeError if the strides don't allow it; `reshape` then copies.

    >>> import flambeau
    >>> flambeau.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """)
# PyTorch's names of what `reshape` gives: of a tensor with gaps in memory, and of a fresh copy,
# which nobody else has, so that the result is no view of it
reshape_alias = op(
    "reshape_alias(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    kernel=views.view, kind="linear", sizes="size", function=False, method=False,
    aten=(AtenForm("view(Tensor(a) self, SymInt[] size) -> Tensor(a)"),),
    d_self=lambda grad, self_shape: reshape_to(grad, self_shape),
    doc="`view` as a part of `reshape`.")
unsafe_view = op(
    "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    kernel=views.view, kind="linear", sizes="size", canonical=_prepare_view, kernel_checks=True,
    method=False, out=False, d_self=lambda grad, self_shape: reshape_to(grad, self_shape),
    doc="`view` of a tensor that nobody else has, which is no view of it.")


def reshape_to(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`reshape` to a shape that is known to fit."""
    if (type(input) in plain_types and input._array.flags.c_contiguous) or input.is_contiguous():
        return view(input, shape)
    if viewable(input, shape):
        return reshape_alias(input, shape)
    return unsafe_view(copy_in(input), shape)


def _reshape(input: Tensor, shape: Any) -> Tensor:
    if type(input) in plain_types and input._array.flags.c_contiguous:
        return view(input, shape)
    return reshape_to(input, infer_size(size_of((shape,)), input._array.size))


reshape = op(
    "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", body=_reshape,
    doc="The elements in the same order with another shape: a view if possible, else a copy.")


def viewable(input: Tensor, shape: tuple[int, ...]) -> bool:
    """Can a tensor that is not contiguous be seen with that shape?"""
    if type(input) not in plain_types and not input.is_meta and not hasattr(
            type(input), "__torch_dispatch__"):         # its own strides say nothing
        return False
    return views.reshape(input._array, shape) is not None


# ---- with another dtype --------------------------------------------------------------------------


def check_reinterpreted(input: Tensor, target: Any) -> tuple[Any, ...]:
    """What PyTorch requires of sizes and strides for `view(dtype)`."""
    wanted = as_numpy_dtype(target)
    if wanted is None or not isinstance(target, dtype):
        raise TypeError("view(): argument must be a size or a torch.dtype, not "
                        f"{type_name_of(target)}")
    x = input._array
    old, new = x.itemsize, wanted.itemsize
    if old == new:
        return input, wanted
    said = (f"to view {type_name(input.dtype)} as {type_name(target)} (different element sizes)")
    if not x.ndim:
        raise RuntimeError(f"self.dim() cannot be 0 {said}")
    if x.strides[-1] != old and x.shape[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {said}, but got {x.strides[-1] // old}")
    if new > old and (x.shape[-1] * old) % new:
        raise RuntimeError(f"self.size(-1) must be divisible by {new // old} {said}, but got "
                           f"{x.shape[-1]}")
    if new > old and any(s % new for s in x.strides[:-1]):
        raise RuntimeError(f"self.stride(0) must be divisible by {new // old} {said}")
    return input, wanted


def _view_dtype_batched(size: int, dims: Any, self: Tensor, dtype: Any) -> tuple[Tensor, int]:
    return reinterpreted_view(contiguous(self.movedim(dims[0], 0)), dtype), 0


op("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", overload_of=view,
   kernel=reinterpreted, canonical=check_reinterpreted, differentiable=False, replay=True,
   batch=_view_dtype_batched)


def reinterpreted_view(input: Tensor, dtype: Any) -> Tensor:
    """`view` with another dtype, one of NumPy."""
    return table["view.dtype"].call(input, dtype)


# ---- flattening and its inverse ------------------------------------------------------------------


def _flatten(input: Tensor, start_dim: int, end_dim: int) -> Tensor:
    shape = input._array.shape
    if start_dim == 0 and end_dim == -1 and len(shape) > 1:
        return reshape(input, (input._array.size,))
    first, last = wrap_dim(start_dim, len(shape) or 1), wrap_dim(end_dim, len(shape) or 1)
    if not shape:
        return reshape(input, (1,))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    return reshape(input, (*shape[:first], prod(shape[first:last + 1]), *shape[last + 1:]))


flatten = op(
    "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    body=_flatten, doc="""Dimensions `start_dim` to `end_dim` as one.

    >>> import flambeau
    >>> flambeau.zeros(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """)


def _unflattened(input: Tensor, dim: int, sizes: Any) -> Tensor:
    shape = input._array.shape
    dim = wrap_dim(dim, len(shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError("unflatten got an unexpected error:\nDimension specified as 0 but "
                           "tensor has no dimensions")
    if min(sizes) < 0:
        if min(sizes) < -1 or sizes.count(-1) > 1:
            try:
                infer_size(sizes, shape[dim])
            except RuntimeError as error:
                raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        rest = prod([s for s in sizes if s != -1])
        if rest and shape[dim] % rest == 0:
            sizes = tuple([shape[dim] // rest if s == -1 else s for s in sizes])
    if prod(sizes) != shape[dim]:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size "
                           f"of dim {dim} ({shape[dim]}) in the input tensor")
    return view(input, (*shape[:dim], *sizes, *shape[dim + 1:]))


unflatten = op("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
               body=_unflattened,
               doc="Dimension `dim` as several; one of `sizes` may be -1.")


_method = Tensor.unflatten


def _unflatten(self: Tensor, dim: int, sizes: Any) -> Tensor:
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    return _method(self, dim, sizes)


_unflatten.__qualname__, _unflatten.__doc__ = "Tensor.unflatten", unflatten.__doc__
Tensor.unflatten = python_function(_unflatten, namespace=(), name="unflatten", of=unflatten)
ravel = op("ravel(Tensor(a) self) -> Tensor(a)",
           body=lambda input: reshape(contiguous(input), (-1,)),
           doc="All elements as a vector; a view if possible.")
view_as = op("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", function=False,
             body=lambda input, other: view(input, other._array.shape),
             doc="`view` with the shape of `other`.")
reshape_as = op("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", function=False,
                body=lambda input, other: reshape(input, other._array.shape),
                doc="`reshape` with the shape of `other`.")
