"""Joining tensors: `cat`, `stack` and their kin, grids and products of vectors."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core import devices
from flambeau.core.dtypes import default_float, from_numpy_dtype
from flambeau.core.promotion import convert
from flambeau.core.promotion import join as join_types
from flambeau.core.shapes import broadcast_shapes, wrap_dim
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.declaration import op
from flambeau.dispatch.members import member
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels._extension import compiled
from flambeau.kernels.moving import rearranging, views
from flambeau.kernels.moving.layouts import channels_last, has_channels_last
from flambeau.kernels.refused import refuse
from flambeau.ops.indexing.basic import cut
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.inplace import becomes_view
from flambeau.ops.pointwise.arithmetic import together
from flambeau.ops.view.reshaping import reshape, view_as
from flambeau.ops.view.shape import (
    batch_first,
    expand,
    movedim,
    select,
    squeeze,
    transpose,
    unsqueeze,
)
from flambeau.schema.errors import type_name as type_name_of

_CAST = "torch.cat(): input types can't be cast to the desired output type {out}"

# ---- joining -------------------------------------------------------------------------------------

@compiled("cat")
def _cat_kernel(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    """In the type that all can be converted to; vectors of length 0 count for nothing."""
    first = arrays[0].dtype
    if any(a.dtype is not first for a in arrays):
        common = from_numpy_dtype(first)
        for a in arrays[1:]:
            common = join_types(common, from_numpy_dtype(a.dtype))
        arrays = [convert(a, common.numpy) for a in arrays]
    kept = [a for a in arrays if a.ndim != 1 or a.size]
    if not kept:
        return arrays[0].copy()
    joined = views.join(kept, dim)
    if joined is None:
        joined = np.concatenate(kept, dim)
        if all(has_channels_last(a) for a in kept):
            return joined if has_channels_last(joined) else channels_last(joined)
        if not joined.flags.c_contiguous:
            joined = views.contiguous(joined)
    return joined


@compiled("stack")
def _stack_kernel(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    """Inside, a stack is a join whose dimension is split: it lies in memory as that does."""
    shape = arrays[0].shape
    if dim < len(shape):
        return _cat_kernel(arrays, dim).reshape(*shape[:dim], len(arrays), *shape[dim:])
    return _cat_kernel([views.expand_dims(np.ascontiguousarray(a) if a.ndim else a, dim)
                        for a in arrays], dim)


def _cat_vjp(grad: Tensor, tensors_shapes: list[Any], dim: int) -> list[Any]:
    parts, at = [], 0
    for shape in tensors_shapes:
        if len(shape) == 1 and shape[0] == 0:
            parts.append(new_zeros(grad, shape))
            continue
        n = shape[dim]
        parts.append(cut(grad, dim, at, at + n))
        at += n
    return parts


def _cat_batched(size: int, dims: Any, tensors: Any, dim: int) -> Any:
    """Without the vectors of length 0, to which `dim` means nothing."""
    kept = [i for i, (t, d) in enumerate(zip(tensors, dims))
            if t._array.ndim != 1 + (d is not None) or t._array.size]
    if not kept or len(kept) == len(tensors):
        return NotImplemented
    whole = [expand(tensors[i], (size, *tensors[i]._array.shape)) if dims[i] is None
             else movedim(tensors[i], dims[i], 0) for i in kept]
    return cat(whole, dim + 1), 0


def _prepare_cat(tensors: Any, dim: int) -> tuple[Any, int]:
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    shapes = [t._array.shape for t in tensors]
    if () in shapes:
        raise RuntimeError(f"zero-dimensional tensor (at position {shapes.index(())}) cannot be "
                           "concatenated")
    first = next((s for s in shapes if s != (0,)), None)
    if first is None:                       # nothing at all: then any dimension will do
        return tuple(tensors), 0
    dim = wrap_dim(dim, len(first))
    for i, shape in enumerate(shapes):
        if shape == (0,):
            continue
        if len(shape) != len(first):
            raise RuntimeError("Tensors must have same number of dimensions: got "
                               f"{len(first)} and {len(shape)}")
        for d, (a, b) in enumerate(zip(first, shape)):
            if a != b and d != dim:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. "
                                   f"Expected size {a} but got size {b} for tensor number {i} in "
                                   "the list.")
    devices.check_same(tensors)
    return tuple(tensors), dim


cat = op(
    "cat(Tensor[] tensors, int dim=0) -> Tensor", autocast="widest",
    kernel=_cat_kernel, kind="linear", dims="dim", canonical=_prepare_cat, kernel_checks=True,
    vjp=_cat_vjp, batch=_cat_batched, method=False, overlap="index", out_cast=_CAST,
    aliases=("concat(Tensor[] tensors, int dim=0) -> Tensor",
             "concatenate(Tensor[] tensors, int dim=0) -> Tensor"),
    doc="""The tensors one after another along `dim`; their other extents agree.

    >>> import flambeau
    >>> flambeau.cat([flambeau.ones(2), flambeau.zeros(1)])
    tensor([1., 1., 0.])
    """)


def _prepare_stack(tensors: Any, dim: int) -> tuple[Any, int]:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0]._array.shape
    dim = wrap_dim(dim, len(shape) + 1)
    for i, t in enumerate(tensors):
        if t._array.shape != shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(shape)} "
                               f"at entry 0 and {list(t._array.shape)} at entry {i}")
    devices.check_same(tensors)
    return tuple(tensors), dim


stack = op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor", autocast="widest",
    kernel=_stack_kernel, kind="linear", new_dims="dim", canonical=_prepare_stack,
    kernel_checks=True,
    method=False, overlap="index", out_cast=_CAST, vjp=lambda grad, tensors_shapes, dim: [
        select(grad, dim, i) for i in range(len(tensors_shapes))],
    batch=lambda size, dims, tensors, dim: (stack(
        [batch_first(t, d, size) for t, d in zip(tensors, dims)], dim + 1), 0),
    doc="Tensors of one shape along a new dimension `dim`.")


def _declare_stack(name: str, rank: int, dim: int, doc: str, *aliases: str) -> Any:
    def body(tensors: Any) -> Tensor:
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        raised = [at_least(t, rank) for t in tensors]
        return cat(raised, 0 if rank == 1 and raised[0]._array.ndim == 1 else dim)
    return op(f"{name}(Tensor[] tensors) -> Tensor", body=body, method=False, out_cast=_CAST,
              out_reported_as="cat", doc=doc, aliases=aliases)


def at_least(tensor: Tensor, rank: int) -> Tensor:
    n = tensor._array.ndim
    if n >= rank:
        return tensor
    if n == 0:
        return reshape(tensor, (1,) * rank)
    if n == 1:
        tensor = unsqueeze(tensor, 0)
    return unsqueeze(tensor, -1) if rank == 3 else tensor


hstack = _declare_stack("hstack", 1, 1, "Tensors side by side: along dimension 1 (0 for vectors).")
vstack = _declare_stack("vstack", 2, 0, "Tensors below each other: along dimension 0, as rows.",
                        "row_stack(Tensor[] tensors) -> Tensor")
dstack = _declare_stack("dstack", 3, 2, "Tensors behind each other: along dimension 2.")


def _column_stack(tensors: Any) -> Tensor:
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return cat([reshape(t, (t._array.size, 1)) if t._array.ndim <= 1 else t for t in tensors], 1)


column_stack = op("column_stack(Tensor[] tensors) -> Tensor", body=_column_stack, method=False,
                  out_cast=_CAST, out_reported_as="cat",
                  doc="Tensors side by side, vectors as columns.")


def _declare_atleast(rank: int) -> Any:
    name, doc = f"atleast_{rank}d", f"Views with at least {rank} dimension{'s' * (rank > 1)}."

    def body(one: Any, several: Any = None) -> Any:
        given = several if one is None else one
        return at_least(given, rank) if isinstance(given, Tensor) else tuple(
            [at_least(t, rank) for t in given])
    raised = op(f"{name}(Tensor self) -> Tensor", f"{name}.Sequence(Tensor[] tensors) -> Tensor[]",
                body=body, function=False, method=False, doc=doc)

    def function(*tensors: Any) -> Any:
        return raised(tensors[0] if len(tensors) == 1 else tensors)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return python_function(function, of=raised)


def _all_tensors(values: Any) -> Any:
    """Raise for what is no tensor among arguments."""
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got "
                            f"{type_name_of(value)}")
    return values


atleast_1d, atleast_2d, atleast_3d = (_declare_atleast(r) for r in (1, 2, 3))

# ---- to a common shape, grids --------------------------------------------------------------------


@python_function
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape; those that have it already are given back."""
    shapes = [t._array.shape for t in _all_tensors(tensors)]
    shape = broadcast_shapes(*shapes)
    return tuple([t if own == shape else expand(t, shape) for t, own in zip(tensors, shapes)])


@op("meshgrid(Tensor[] tensors) -> Tensor[]",
    "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", method=False, out=False,
    function=False)
def _meshgrid(tensors: Any, indexing: str | None) -> tuple[Tensor, ...]:
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        warn_once("torch.meshgrid: in an upcoming release, it will be required to pass the "
                  "indexing argument.")
        indexing = "ij"
    for fact in ("dtype", "device"):
        if len({getattr(t, fact) for t in _all_tensors(tensors)}) > 1:
            raise RuntimeError(f"meshgrid expects all tensors to have the same {fact}")
    if indexing not in ("ij", "xy"):
        raise RuntimeError("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but "
                           f"received: {indexing}")
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but "
                               f"got: {t._array}")
    shape = tuple([t.numel() for t in tensors])
    grids = [expand(reshape(t, (1,) * i + (-1,) + (1,) * (len(shape) - i - 1)), shape)
             for i, t in enumerate(tensors)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@python_function(of=_meshgrid)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Vectors expanded to a grid: one tensor for each coordinate.

    `indexing` "ij" (rows first) or "xy" (the first two exchanged).
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    return _meshgrid(tensors) if indexing is None else _meshgrid(tensors, indexing=indexing)


meshgrid.__kwdefaults__ = {"indexing": None}     # libraries look there for the argument


def _block_diag_vjp(grad: Tensor, tensors_shapes: list[Any]) -> list[Tensor]:
    parts, row, column = [], 0, 0
    for shape in tensors_shapes:
        m, n = (1,) * (2 - len(shape)) + shape
        part = cut(cut(grad, 0, row, row + m), 1, column, column + n)
        parts.append(part if len(shape) == 2 else reshape(part, shape))
        row, column = row + m, column + n
    return parts


def _blocks_of_each(size: int, dims: Any, tensors: Any) -> Tensor:
    """The matrices of each example, between zeros."""
    matrices = [batch_first(t, d, size) for t, d in zip(tensors, dims)]
    matrices = [reshape(m, (size, *(1,) * (3 - m.ndim), *m._array.shape[1:])) for m in matrices]
    columns, before, bands = sum([m._array.shape[2] for m in matrices]), 0, []
    for m in matrices:
        height, width = m._array.shape[1:]
        sides = [new_zeros(m, (size, height, n)) for n in (before, columns - before - width)]
        bands.append(cat([sides[0], m, sides[1]], 2))
        before += width
    return cat(bands, 1)


_block_diag = op(
    "_block_diag(Tensor[] tensors) -> Tensor", kernel=rearranging.block_diag, kind="linear",
    function=False, method=False, node="BlockDiagBackward0", vjp=_block_diag_vjp,
    batch=lambda size, dims, tensors: (_blocks_of_each(size, dims, tensors), 0))


@python_function
def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given matrices along its diagonal."""
    if not tensors:
        return wrap(np.empty((1, 0), default_float()))
    for i, t in enumerate(_all_tensors(tensors)):
        if t._array.ndim > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                               f"Input {i} has {t._array.ndim} dimensions")
    return _block_diag(tuple(together(*tensors)))


@python_function
def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples of elements of the given vectors, one a row."""
    for t in _all_tensors(tensors):
        if t._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t._array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(g, (-1,)) for g in meshgrid(*tensors, indexing="ij")], 1)


def _combinations(input: Tensor, r: int, with_replacement: bool) -> Tensor:
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return wrap(np.empty(0, input._array.dtype))
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    refuse(input._array, "U", "masked_select")
    rows = np.array(list(pick(range(input._array.size), r)), np.int64).reshape(-1, r)
    return stack([input[wrap(column)] for column in rows.T], 1)


combinations = op(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", body=_combinations,
    method=False, out=False, doc="All combinations of `r` elements of a vector, one a row.")

# ---- writes to the shape alone -------------------------------------------------------------------

def _transpose_matrix(self: Tensor) -> Tensor:
    if self.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return transpose(self, 0, 1) if self.ndim == 2 else view_as(self, self)


becomes_view(squeeze, "squeeze_()", "squeeze_.dim(int dim)", "squeeze_.dims(int[] dim)")
becomes_view(unsqueeze, "unsqueeze_(int dim)")
becomes_view(transpose, "transpose_(int dim0, int dim1)")
becomes_view(_transpose_matrix, "t_()")
for _schema in ("swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)",
                "swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)"):
    member(_schema, body=lambda self, first, second: self.transpose_(first, second),
           function=False, doc="`transpose_`; returns the tensor.")
