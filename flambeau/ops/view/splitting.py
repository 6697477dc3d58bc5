"""Cutting tensors into parts, which are views: `split`, `chunk`, `unbind`, `narrow`, …"""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from flambeau.core.dtypes import int64
from flambeau.core.promotion import type_name
from flambeau.core.shapes import size_of, wrap_dim
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.moving import views
from flambeau.kernels.moving.rearranging import summed_windows
from flambeau.kernels.moving.views import ALL
from flambeau.ops.coercion import values_below
from flambeau.ops.indexing.basic import slice_backward
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.indexing.slices import index_select
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.view.join import cat, stack
from flambeau.ops.view.shape import movedim, reshape

NO_DIMENSION = IndexError("Dimension specified as 0 but tensor has no dimensions")

# ---- one part ------------------------------------------------------------------------------------


def _prepare_slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
                   step: int = 1) -> tuple[Any, ...]:
    if not input._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return input, wrap_dim(dim, input._array.ndim), start, end, step


cut = op(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, "
    "SymInt step=1) -> Tensor(a)",
    kernel=views.slice_, kind="linear", dims="dim", canonical=_prepare_slice, kernel_checks=True,
    function=False, method=False,
    d_self=lambda grad, self_shape, dim, start, end, step: slice_backward(
        grad, self_shape, (*ALL[:dim], slice(start, end, step), Ellipsis)),
    doc="Every `step`-th slice along `dim`, from `start` to before `end`, as a view.")


def _narrow_from_each(input: Tensor, dim: int, start: Tensor, length: int, n: int) -> Tensor:
    """`narrow` where vmap starts each slice at a place of its own, which gives no view."""
    starts = values_below(start)
    wrong = starts[(starts < -n) | (np.where(starts < 0, starts + n, starts) + length > n)]
    if wrong.size:
        raise RuntimeError(f"start ({wrong[0]}) + length ({length}) exceeds dimension size ({n}).")
    places = where(start < 0, start + n, start) + wrap(np.arange(length))
    return index_select(input, dim, places)


def _narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    shape = input._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    given = isinstance(start, Tensor)
    if given and (start._array.ndim or start._array.dtype.kind not in "ui"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    dim = wrap_dim(dim, len(shape))
    n = shape[dim]
    if type(start) is Tensor:
        start = int(start._array)
    elif given and hasattr(start, "_bdim"):             # one for each slice under vmap
        return _narrow_from_each(input, dim, start, length, n)
    start = int(start)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got "
                         f"{start})")
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return cut(input, dim, start, start + length)


narrow = op(
    "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
    body=_narrow, doc="`length` slices of `input` along `dim`, from `start` on, as a view.")


# ---- several parts -------------------------------------------------------------------------------


def _prepare_unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, int]:
    if not input._array.ndim:
        raise NO_DIMENSION
    return input, wrap_dim(dim, input._array.ndim)


def _unbind_vjp(grad: list[Any], self_shape: tuple[int, ...], dim: int) -> Tensor:
    known = next(g for g in grad if g is not None)
    return stack([new_zeros(known, self_shape[:dim] + self_shape[dim + 1:]) if g is None else g
                  for g in grad], dim)


unbind = op(
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    kernel=views.unbind, kind="linear", dims="dim", canonical=_prepare_unbind, kernel_checks=True,
    vjp=_unbind_vjp,
    doc="The slices of `input` along `dim`, as a tuple of views.")


def split_vjp(grad: list[Any], self_shape: Any, sizes: Any, dim: int) -> Any:
    known = next(g for g in grad if g is not None)
    return cat([new_zeros(known, self_shape[:dim] + (n,) + self_shape[dim + 1:])
                if g is None else g for g, n in zip(grad, sizes)], dim)


def _prepare_split_with_sizes(input: Tensor, sizes: Any,
                              dim: int = 0) -> tuple[Tensor, tuple[int, ...], int]:
    if not input._array.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    sizes, wrapped = size_of((sizes,)), wrap_dim(dim, input._array.ndim)
    n = input._array.shape[wrapped]
    if sizes and min(sizes) < 0:
        raise RuntimeError("split_with_sizes expects split_sizes have only non-negative entries, "
                           f"but got split_sizes={list(sizes)}")
    if sum(sizes) != n:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n} (input "
                           f"tensor's size at dimension {dim}), but got split_sizes={list(sizes)}")
    return input, sizes, wrapped


split_with_sizes = op(
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    kernel=views.split_with_sizes, kind="linear", dims="dim", canonical=_prepare_split_with_sizes,
    kernel_checks=True,
    vjp=lambda grad, self_shape, split_sizes, dim: split_vjp(grad, self_shape, split_sizes, dim),
    doc="Parts of the given extents along `dim`, as views.")


def _prepare_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, int, int]:
    if not input._array.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError("split expects split_size be non-negative, but got split_size="
                           f"{split_size}")
    dim = wrap_dim(dim, input._array.ndim)
    n = input._array.shape[dim]
    if not split_size and n:
        raise RuntimeError("split_size can only be 0 if dimension size is 0, but got dimension "
                           f"size of {n}")
    return input, split_size, dim


def evenly_vjp(grad: list[Any], self_shape: Any, split_size: int, dim: int) -> Any:
    """The gradient of parts of one extent, the last of which may be smaller."""
    n = self_shape[dim]
    return split_vjp(grad, self_shape, [min(split_size, n - i * split_size)
                                        for i in range(len(grad))], dim)


split_evenly = op(
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    kernel=views.split, kind="linear", dims="dim", canonical=_prepare_split, kernel_checks=True,
    vjp=lambda grad, self_shape, split_size, dim: evenly_vjp(grad, self_shape, split_size, dim),
    function=False, method=False,
    doc="Parts of one extent along `dim`; the last may be smaller.")


@op("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
    overload_of=split_evenly, function=False, method=False, out=False)
def _split_by_sizes(self: Tensor, split_size: Any, dim: int) -> tuple[Tensor, ...]:
    return split_with_sizes(self, split_size, dim)


def _split(self: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along `dim`: of one extent (the last may be smaller), or of given extents."""
    if type(split_size) is int:
        return split_evenly(self, split_size, dim)
    if isinstance(split_size, Tensor) and split_size.numel() == 1:
        split_size = int(split_size)
    if isinstance(split_size, int):
        return split_evenly(self, split_size, dim)
    return split_with_sizes(self, split_size, dim)


@python_function(of=split_evenly)
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along `dim`: of one extent (the last may be smaller), or of given extents.

    >>> import flambeau
    >>> [len(part) for part in flambeau.arange(5).split(2)]
    [2, 2, 1]
    """
    return tensor.split(split_size_or_sections, dim)


_split.__qualname__ = "Tensor.split"        # as messages call it
Tensor.split = python_function(_split, namespace=(), name="split", of=split_evenly)


def _chunk(input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    size = extent_of_chunks(input, chunks, dim)
    return split_evenly(input, size, dim) if size else split_with_sizes(input, (0,) * chunks, dim)


chunk = op(
    "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", body=_chunk,
    doc="At most `chunks` parts of equal extent along `dim`, the last possibly smaller, as views.")


def extent_of_chunks(input: Tensor, chunks: int, dim: int = 0) -> int:
    """The extent of all chunks but the last; raises for what cannot be chunked."""
    if not input._array.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input._array.shape[wrap_dim(dim, input._array.ndim)]
    return (n + chunks - 1) // chunks


def _tensor_split(input: Tensor, sections: Any, dim: int, indices: Any, places: Any
                  ) -> tuple[Tensor, ...]:
    if not input.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a "
                           "tensor with 0 dims")
    if places is not None:
        sections, indices = read_places(places)
    dim = wrap_dim(dim, input.ndim)
    if sections is None:
        bounds = [0, *indices]
        parts = [cut(input, dim, a, b) for a, b in itertools.pairwise(bounds)]
        return (*parts, cut(input, dim, bounds[-1], input._array.shape[dim]))
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    size, larger = divmod(input._array.shape[dim], sections)
    bounds = [i * size + min(i, larger) for i in range(sections + 1)]
    return tuple([cut(input, dim, a, b) for a, b in itertools.pairwise(bounds)])


def read_places(given: Tensor) -> tuple[Any, Any]:
    """The number of sections, or the indices, that a tensor holds."""
    if given.dtype != int64:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of "
                           f"long, but got {type_name(given.dtype)}")
    if given.ndim > 1:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a "
                           "zero-dimensional or one-dimensional tensor, but got a tensor with "
                           f"{given.ndim} dims")
    return (given.item(), None) if given.ndim == 0 else (None, given.tolist())


tensor_split = op(
    "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
    "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, "
    "Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
    body=_tensor_split,
    doc="`n` parts whose extents differ by at most one, or parts cut at given indices, as views.")


def _declare_split(name: str, dim: int, least: int) -> Any:
    def body(input: Tensor, sections: Any, indices: Any) -> tuple[Tensor, ...]:
        if input.ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, "
                               f"but got a tensor with {input.ndim} dimensions!")
        along = 0 if name == "hsplit" and input.ndim == 1 else dim
        n = input._array.shape[along]
        if sections is not None and (not sections or n % sections):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {along}, but the "
                               f"size of the dimension {n} is not divisible by the split_size "
                               f"{sections}!")
        if sections is None or sections < 0:
            return _tensor_split(input, sections, along, indices, None)
        size = n // sections
        return tuple([cut(input, along, i * size, i * size + size) for i in range(sections)])
    return op(f"{name}.int(Tensor(a -> *) self, SymInt sections) -> Tensor(a)[]",
              f"{name}.array(Tensor(a -> *) self, SymInt[] indices) -> Tensor(a)[]",
              body=body, doc=f"`tensor_split` along dimension {dim}.")


hsplit = _declare_split("hsplit", 1, 1)
vsplit = _declare_split("vsplit", 0, 2)
dsplit = _declare_split("dsplit", 2, 3)

# ---- windows -------------------------------------------------------------------------------------


def _prepare_windows(grad: Tensor, shape: Any, dim: int, size: int, step: int) -> tuple[Any, ...]:
    shape = size_of((shape,))
    return grad, shape, wrap_dim(dim, len(shape)), size, step


unfold_backward = op(
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    kernel=summed_windows, kind="linear", canonical=_prepare_windows, method=False, out=False,
    batch=lambda count, dims, grad, shape, dim, size, step: (_batched_windows(
        movedim(grad, dims[0], 0), size_of((shape,)), dim, size, step), 0),
    d_grad_in=lambda grad, dim, size, step: unfold(grad, dim, size, step),
    doc="The sum of windows, each where it was taken.")


def _batched_windows(grad: Tensor, shape: Any, dim: int, size: int, step: int) -> Tensor:
    if shape:
        return unfold_backward(grad, (grad.shape[0], *shape), wrap_dim(dim, len(shape)) + 1, size,
                               step)
    count = grad.shape[0]               # of a number there is one window, which has no dimension
    return reshape(unfold_backward(reshape(grad, (count, 1, -1)), (count, 1), 1, size, step),
                   (count,))


def _prepare_unfold(input: Tensor, dimension: int, size: int, step: int) -> tuple[Any, ...]:
    dim = wrap_dim(dimension, input._array.ndim)
    n = input._array.shape[dim] if input._array.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return input, dim, size, step


unfold = op(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    kernel=views.windows, kind="linear", dims="dimension", canonical=_prepare_unfold,
    kernel_checks=True, function=False,
    d_self=lambda grad, self_shape, dimension, size, step: unfold_backward(
        grad, self_shape, dimension, size, step),
    doc="""All windows of `size` slices along a dimension, `step` apart, as a view with one more
    dimension.""")


