"""Views as copies (`*_copy`), and new tensors with a part of them replaced (`*_scatter`)."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.op import table
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels._extension import Misfit
from flambeau.kernels.moving import rearranging, views
from flambeau.kernels.moving.views import ALL
from flambeau.kernels.pointwise.complex import reinterpreted
from flambeau.ops.indexing.basic import slice_backward
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.pointwise import complex as complex_views
from flambeau.ops.view import copying, shape, strided
from flambeau.ops.view.conversion import cast, clone
from flambeau.ops.view.copies import copies, copying_kernel, exact_copies
from flambeau.ops.view.diagonal import diagonal
from flambeau.ops.view.reshaping import check_reinterpreted, view
from flambeau.ops.view.shape import movedim, select
from flambeau.ops.view.splitting import (
    cut,
    extent_of_chunks,
    split_evenly,
    split_with_sizes,
    unbind,
    unfold,
)
from flambeau.ops.view.strided import as_strided

slice_inverse = op(
    "slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
    "SymInt step=1) -> Tensor(a)",
    body=lambda input, src, *_: as_strided(input, src.shape, src.stride(),
                                                 src.storage_offset()),
    doc="The whole of which `input` is a slice: its memory, seen with the form of `src`.")


# ---- views as copies ----------------------------------------------------------------------------

for _view in (shape.select, cut, split_evenly, complex_views.view_as_complex,
              complex_views.view_as_real):
    copies(_view)
for _view in (copying.alias, strided.as_strided, shape.expand, shape.permute,
              shape.squeeze, shape.t, shape.transpose, unfold, shape.unsqueeze):
    exact_copies(_view)
exact_copies(unbind, out_reported_as="unbind_copy")
exact_copies(split_with_sizes, out_reported_as=False)
view_copy = exact_copies(
    view, kernel=lambda self, size: views.view(views.contiguous(self), size), batch=None)
op("view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", overload_of=view_copy,
   kernel=copying_kernel(reinterpreted), canonical=check_reinterpreted, differentiable=False,
   method=False, out_type=OUT_TYPE, batch=lambda size, dims, self, dtype: (
       table["view_copy.dtype"].call(movedim(self, dims[0], 0), dtype), 0))
op("detach_copy(Tensor self) -> Tensor", kernel=views.contiguous, differentiable=False,
   method=False, shape="self", batch=lambda size, dims, self: (clone(self), dims[0]),
   doc="A copy of what `detach` shows.")


def _prepare_narrow_copy(input: Tensor, dim: int, start: int, length: int) -> tuple[Any, ...]:
    if dim >= input._array.ndim > 0:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but "
                           "got false.  (Could this error message be improved?  If so, please "
                           "report an enhancement request to PyTorch.)")
    if not input._array.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, input._array.ndim)
    n = input._array.shape[dim]
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got "
                         f"{start})")
    if length < 0 or (start + n if start < 0 else start) + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return input, dim, start, length


narrow_copy = op(
    "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
    kernel=copying_kernel(views.slices), kind="linear", dims="dim", canonical=_prepare_narrow_copy,
    kernel_checks=True, out_first=True,
    out_type="Expected self.dtype() == output.dtype() to be true, but got false.  (Could this "
    "error message be improved?  If so, please report an enhancement request to PyTorch.)",
    d_self=lambda grad, self_shape, dim, start, length: slice_backward(
        grad, self_shape, (*ALL[:dim], slice(
            first := start % self_shape[dim] if start < 0 else start, first + length), Ellipsis)),
    doc="A copy of what `narrow` shows.")

# ---- parts that are written to -------------------------------------------------------------------


_DOC = "Parts on the same memory that don't count as views, so that they may be written to."
unsafe_split, unsafe_split_with_sizes = (
    op(_text, kernel=_of.twin.declaration.kernel, kind="linear", dims="dim", out=False,
       canonical=_of.twin.declaration.canonical, kernel_checks=True, vjp=_of.twin.declaration.vjp,
       doc=_DOC)
    for _text, _of in (
        ("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
         split_evenly),
        ("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
         split_with_sizes)))


def _unsafe_chunk(input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    size = extent_of_chunks(input, chunks, dim)
    return unsafe_split(input, size, dim) if size else \
        unsafe_split_with_sizes(input, (0,) * chunks, dim)


op("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", body=_unsafe_chunk, out=False,
   doc=_DOC)

# ---- writes as new tensors ----------------------------------------------------------------------


def _check_part(src: Tensor, part: Tensor) -> None:
    if src._array.shape != part._array.shape:
        raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                           f"{list(src._array.shape)}, slice size = {list(part._array.shape)}")


def _as_type_of(src: Tensor, like: Tensor) -> Tensor:
    d = like._array.dtype
    return src if src._array.dtype == d else cast(src, d)


def _prepare_select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> tuple[Any, ...]:
    part = select(input, dim, index)
    dim = wrap_dim(dim, input._array.ndim)
    _check_part(src, part)
    return input, _as_type_of(src, input), dim, index


def _copy_with_slices(self: np.ndarray, src: np.ndarray, dim: int, start: int,
                      step: int) -> np.ndarray:
    """A copy, laid out in memory as the tensor is, with `src` as some of its slices."""
    if self.base is None and self.flags.c_contiguous:
        return rearranging.scattered_slices(self, src, dim, start, step)
    result = views.copy_in_place(self)
    rearranging.write_slices(result, src, dim, start, step)
    return result


def _select_scatter_kernel(self: Any, src: Any, dim: int, index: int) -> Any:
    shape = self.shape
    if src.shape != shape[:dim] + shape[dim + 1:]:
        raise Misfit
    return _copy_with_slices(self, src, dim, _from_front(index, shape[dim]), 1)


select_scatter = op(
    "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
    kernel=_select_scatter_kernel,
    kind="linear", dims="dim", canonical=_prepare_select_scatter, kernel_checks=True, out=False,
    d_self=lambda grad, src_shape, dim, index: select_scatter(
        grad, new_zeros(grad, src_shape), dim, index),
    d_src=lambda grad, dim, index: select(grad, dim, index),
    doc="""A copy of `input` with `src` as slice `index` of dimension `dim`.

    >>> import flambeau
    >>> flambeau.select_scatter(flambeau.zeros(2, 2), flambeau.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """)


def _from_front(index: int, n: int) -> int:
    """An index counted from the front."""
    return index + n if index < 0 else index


def _slice_extent(n: int, start: int | None, end: int | None, step: int) -> tuple[int, int]:
    """Where a slice begins, and how many elements it has."""
    places = range(*slice(start, end, step).indices(n))
    return places.start, len(places)


def _prepare_slice(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None,
                   end: int | None = None, step: int = 1) -> tuple[Any, ...]:
    _check_part(src, cut(input, dim, start, end, step))
    dim = wrap_dim(dim, input._array.ndim)
    return input, _as_type_of(src, input), dim, start, end, step


def _slice_scatter_kernel(self: Any, src: Any, dim: int, start: int | None, end: int | None,
                          step: int) -> Any:
    if step < 1 or not self.ndim:
        raise Misfit
    shape = self.shape
    first, count = _slice_extent(shape[dim], start, end, step)
    if src.shape != (*shape[:dim], count, *shape[dim + 1:]):
        raise Misfit
    return _copy_with_slices(self, src, dim, first, step)


slice_scatter = op(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
    "SymInt step=1) -> Tensor",
    kernel=_slice_scatter_kernel, kind="linear", dims="dim", canonical=_prepare_slice,
    kernel_checks=True, d_self=lambda grad, src_shape, dim, start, end, step: slice_scatter(
        grad, new_zeros(grad, src_shape), dim, start, end, step),
    d_src=lambda grad, dim, start, end, step: cut(grad, dim, start, end, step),
    out_type=OUT_TYPE, out_reported_as="aten::slice_scatter",
    doc="A copy of `input` with `src` as slices `start:end:step` of dimension `dim`.")


def _prepare_diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0,
                              dim2: int = 1) -> tuple[Any, ...]:
    _check_part(src, diagonal(input, offset, dim1, dim2))
    n = input._array.ndim
    return input, _as_type_of(src, input), offset, wrap_dim(dim1, n), wrap_dim(dim2, n)


def _diagonal_scatter_kernel(self: Any, src: Any, offset: int, dim1: int, dim2: int) -> Any:
    if src.shape != views.diagonal(self, offset, dim1, dim2).shape:
        raise Misfit
    if self.base is None and self.flags.c_contiguous:
        return rearranging.diagonal_scatter(self, src, offset, dim1, dim2)
    result = views.copy_in_place(self)
    views.diagonal(result, offset, dim1, dim2)[...] = src
    return result


diagonal_scatter = op(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    kernel=_diagonal_scatter_kernel, kind="linear", dims="dim1 dim2",
    canonical=_prepare_diagonal_scatter, kernel_checks=True, out=False,
    d_self=lambda grad, src_shape, offset, dim1, dim2: diagonal_scatter(
        grad, new_zeros(grad, src_shape), offset, dim1, dim2),
    d_src=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
    doc="A copy of `input` with `src` as a diagonal.")
