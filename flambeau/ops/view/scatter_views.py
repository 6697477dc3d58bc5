"""Views as copies (`*_copy`), and new tensors with a part of them replaced (`*_scatter`)."""
from __future__ import annotations

import dataclasses
import re
from typing import Any

from flambeau.core.graph import next_order
from flambeau.core.op import class_name, composite
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor, basis
from flambeau.dispatch.declaration import op
from flambeau.kernels import rearranging, views
from flambeau.kernels._extension import Misfit
from flambeau.ops.indexing.index import basic_view
from flambeau.ops.linalg.support import composed
from flambeau.ops.node_names import edge_of, rename
from flambeau.ops.pointwise import complex as complex_views
from flambeau.ops.view import copying, join, shape, strided
from flambeau.ops.view.join import diagonal, split, split_with_sizes, unbind
from flambeau.ops.view.shape import select
from flambeau.type_info import contiguous_format


@composed
def slice_inverse(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None,
                  end: int | None = None, step: int = 1) -> Tensor:
    """The whole of which `input` is a slice: its memory, seen with the form of `src`."""
    return basis.as_strided(input, src.shape, src.stride(), src.storage_offset())


# ---- views as copies ----------------------------------------------------------------------------


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
           step: int = 1) -> Tensor:
    dim = wrap_dim(dim, input._array.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return basic_view(input, (*(slice(None),) * dim, slice(start, end, step), Ellipsis))


composite(_slice, namespace=None, name="slice")     # `torch.ops.aten.slice`


def _dtype_or_shape(input: Tensor, size: Any) -> Tensor:
    return shape.view(input, size)


def _copying(kernel: Any) -> Any:
    def copy(*args: Any) -> Any:
        found = kernel(*args)
        return [views.contiguous(part) for part in found] if type(found) is list \
            else views.contiguous(found)
    return copy


_ALIAS = re.compile(r"Tensor\(a( -> \*)?\)")


def copies(view: Any) -> Any:
    """Declare the op of copies of what a view shows: the same arguments and formulas."""
    of = view.twin.declaration
    texts = [_ALIAS.sub("Tensor", text).replace(of.name, f"{of.name}_copy", 1)
             for text in of.texts]
    fields = {f.name: getattr(of, f.name) for f in dataclasses.fields(of)}
    fields |= {"kernel": _copying(of.kernel), "node": f"{class_name(of.name)[:-1]}{{}}_copy",
               "method": False, "function": True, "aliases": (), "namespace": "",
               "doc": f"A copy of what `{of.name}` shows."}
    rules = {f"d_{name}": rule for name, rule in fields.pop("rules").items()}
    for name in ("texts", "published"):
        fields.pop(name)
    return op(*texts, **fields, **rules)


for _view in (diagonal, shape.expand, shape.permute, select, shape.squeeze, shape.t,
              shape.transpose, join.unfold, shape.unsqueeze, split_with_sizes, unbind):
    copies(_view)


def _narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`narrow` with what the copying form says of wrong dimensions and lengths."""
    if dim >= input.ndim > 0:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but "
                           "got false.  (Could this error message be improved?  If so, please "
                           "report an enhancement request to PyTorch.)")
    if length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size "
                           f"({input.shape[dim]}).")
    return join.narrow(input, dim, start, length)


def _copy_by_parts(schema: str, view: Any, node: str = "", method: bool = False) -> Any:
    """An op of copies that is made of the view and `clone`, whose nodes bear its name."""
    def body(*args: Any) -> Any:
        since = next_order()
        seen = view(*args)
        parts = seen if type(seen) is tuple else (seen,)
        found = tuple([basis.clone(part, memory_format=contiguous_format) for part in parts])
        for part, result in zip(parts, found):
            if part._edge is not None and part.grad_fn is not None:
                rename(result, node or f"{part.grad_fn.name()}_copy", since,
                       whole=(edge_of(args[0]),))
        return found if type(seen) is tuple else found[0]
    name = schema.partition("_copy")[0]
    return op(schema, body=body, method=method, doc=f"Copies of what `{name}` shows.")


for _schema, _view in (
        ("alias_copy(Tensor self) -> Tensor", copying.alias),
        ("as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? "
         "storage_offset=None) -> Tensor", strided.as_strided),
        ("detach_copy(Tensor self) -> Tensor", basis.detach),
        ("slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, "
         "SymInt step=1) -> Tensor", _slice),
        ("split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", split),
        ("view_as_complex_copy(Tensor self) -> Tensor", complex_views.view_as_complex),
        ("view_as_real_copy(Tensor self) -> Tensor", complex_views.view_as_real)):
    _copy_by_parts(_schema, _view)
_copy_by_parts("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", _narrow,
               "NarrowCopyBackward0", method=True)


def _view_copy(input: Tensor, size: Any, dtype: Any) -> Tensor:
    since = next_order()
    seen = shape.view(input, size if dtype is None else dtype)
    result = basis.clone(seen, memory_format=contiguous_format)
    if seen._edge is not None and seen.grad_fn is not None:
        rename(result, f"{seen.grad_fn.name()}_copy", since, whole=(edge_of(input),))
    return result


op("view_copy(Tensor self, SymInt[] size) -> Tensor",
   "view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", body=_view_copy, method=False,
   doc="A copy of what `view` shows.")

# ---- parts that are written to -------------------------------------------------------------------


def _parts_of(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, int, int]:
    join.split_arguments(input, split_size, dim)
    return input, split_size, wrap_dim(dim, input._array.ndim)


_DOC = "Parts on the same memory that don't count as views, so that they may be written to."
unsafe_split = op(
    "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    kernel=views.split, kind="linear", dims="dim", canonical=_parts_of,
    kernel_checks=True, out=False,
    vjp=lambda grad, self_shape, split_size, dim: join.split_back(grad, self_shape, tuple(
        [min(split_size, self_shape[dim] - i * split_size) for i in range(len(grad))]), dim),
    doc=_DOC)
unsafe_split_with_sizes = op(
    "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    kernel=views.split_with_sizes, kind="linear", dims="dim", out=False,
    canonical=split_with_sizes.twin.declaration.canonical, kernel_checks=True,
    vjp=split_with_sizes.twin.declaration.vjp, doc=_DOC)


def _unsafe_chunk(input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    _, sizes, dim = join.chunk_arguments(input, chunks, dim)
    return unsafe_split(input, sizes[0], dim) if sizes[0] or len(sizes) != chunks else \
        unsafe_split_with_sizes(input, sizes, dim)


op("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", body=_unsafe_chunk, out=False,
   doc=_DOC)

# ---- writes as new tensors ----------------------------------------------------------------------


def _check_part(src: Tensor, part: Tensor) -> None:
    if src._array.shape != part._array.shape:
        raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                           f"{list(src._array.shape)}, slice size = {list(part._array.shape)}")


def _typed(src: Tensor, like: Tensor) -> Tensor:
    d = like._array.dtype
    return src if src._array.dtype == d else basis.cast(src, d)


def _select_scattered(input: Tensor, src: Tensor, dim: int, index: int) -> tuple[Any, ...]:
    dim = wrap_dim(dim, input._array.ndim)
    _check_part(src, select(input, dim, index))
    return input, _typed(src, input), dim, index


select_scatter = op(
    "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
    kernel=lambda self, src, dim, index: rearranging.scattered_slices(
        self, src, dim, _counted(index, self.shape[dim]), 1),
    kind="linear", dims="dim", canonical=_select_scattered, kernel_checks=True, out=False,
    d_self=lambda grad, src_shape, dim, index: select_scatter(
        grad, basis.new_zeros(grad, src_shape), dim, index),
    d_src=lambda grad, dim, index: select(grad, dim, index),
    doc="""A copy of `input` with `src` as slice `index` of dimension `dim`.

    >>> import flambeau
    >>> flambeau.select_scatter(flambeau.zeros(2, 2), flambeau.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """)


def _counted(index: int, n: int) -> int:
    """An index counted from the front."""
    return index + n if index < 0 else index


def _first_of(n: int, start: int | None, end: int | None, step: int) -> tuple[int, int]:
    """Where a slice begins, and how many elements it has."""
    places = range(*slice(start, end, step).indices(n))
    return places.start, len(places)


def _slice_scattered(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None,
                     end: int | None = None, step: int = 1) -> tuple[Any, ...]:
    dim = wrap_dim(dim, input._array.ndim)
    _check_part(src, _slice(input, dim, start, end, step))
    return input, _typed(src, input), dim, start, end, step


def _write_slice(self: Any, src: Any, dim: int, start: int | None, end: int | None,
                 step: int) -> Any:
    if step < 1 or src.ndim != self.ndim:
        raise Misfit
    first, count = _first_of(self.shape[dim], start, end, step)
    if src.shape[dim] != count:
        raise Misfit
    return rearranging.scattered_slices(self, src, dim, first, step)


slice_scatter = op(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
    "SymInt step=1) -> Tensor",
    kernel=_write_slice, kind="linear", dims="dim", canonical=_slice_scattered, kernel_checks=True,
    d_self=lambda grad, src_shape, dim, start, end, step: slice_scatter(
        grad, basis.new_zeros(grad, src_shape), dim, start, end, step),
    d_src=lambda grad, dim, start, end, step: _slice(grad, dim, start, end, step),
    doc="A copy of `input` with `src` as slices `start:end:step` of dimension `dim`.")


def _diagonal_scattered(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0,
                        dim2: int = 1) -> tuple[Any, ...]:
    _check_part(src, diagonal(input, offset, dim1, dim2))
    n = input._array.ndim
    return input, _typed(src, input), offset, wrap_dim(dim1, n), wrap_dim(dim2, n)


diagonal_scatter = op(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    kernel=rearranging.diagonal_scatter, kind="linear", dims="dim1 dim2",
    canonical=_diagonal_scattered, kernel_checks=True, out=False,
    d_self=lambda grad, src_shape, offset, dim1, dim2: diagonal_scatter(
        grad, basis.new_zeros(grad, src_shape), offset, dim1, dim2),
    d_src=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
    doc="A copy of `input` with `src` as a diagonal.")
