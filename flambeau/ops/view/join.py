"""Joining and cutting tensors, and views that rearrange them."""
from __future__ import annotations

import itertools
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from flambeau import type_info
from flambeau.core.dtypes import default_float, from_numpy_dtype, int32, int64
from flambeau.core.op import composite, linear, primitive
from flambeau.core.promotion import convert, type_name
from flambeau.core.promotion import join as join_types
from flambeau.core.shapes import broadcast_shapes, size_of, wrap_dim
from flambeau.core.tensor import Tensor, basis, wrap
from flambeau.dispatch.declaration import op
from flambeau.kernels import rearranging, views
from flambeau.kernels._extension import compiled
from flambeau.kernels.layouts import has_channels_last
from flambeau.kernels.refused import characters, refuse
from flambeau.kernels.views import ALL
from flambeau.ops.coercion import values_below
from flambeau.ops.indexing.index import take_slice as cut
from flambeau.ops.indexing.slices import index_select
from flambeau.ops.inplace import publish_inplace_view
from flambeau.ops.node_names import one_node
from flambeau.ops.pointwise.arithmetic import together
from flambeau.ops.view.shape import (
    expand,
    movedim,
    permute_to,
    reshape,
    select,
    transpose,
    unsqueeze,
    view,
)

# ---- joining -------------------------------------------------------------------------------------


def _cat(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    first = arrays[0].dtype
    if any(a.dtype is not first for a in arrays):
        common = from_numpy_dtype(first)
        for a in arrays[1:]:
            common = join_types(common, from_numpy_dtype(a.dtype))
        arrays = [convert(a, common.numpy) for a in arrays]
    kept = [a for a in arrays if a.ndim != 1 or a.size] if any(
        a.ndim == 1 and not a.size for a in arrays) else arrays
    if not kept:
        return arrays[0].copy()
    joined = views.join(kept, dim)
    if joined is None:
        joined = np.concatenate(kept, dim)
        if not joined.flags.c_contiguous and not has_channels_last(joined):
            joined = views.contiguous(joined)
    return joined


def _check_list(name: str, tensors: Any) -> None:
    if not isinstance(tensors, Iterable) or isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                        f"{type(tensors).__name__}")


def _cat_back(grad: Tensor, tensors_shapes: list[Any], dim: int) -> list[Any]:
    parts, at = [], 0
    for shape in tensors_shapes:
        if len(shape) == 1 and shape[0] == 0:
            parts.append(basis.new_zeros(grad, shape))
            continue
        n = shape[dim]
        parts.append(cut(grad, (*ALL[:dim], slice(at, at + n), Ellipsis)))
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


@linear(_cat, tensors=("tensors",), variadic=True, dims="dim", vjp=_cat_back, batch=_cat_batched,
        aliases=("concat", "concatenate"), method=False, path="cat")
def cat(tensors: Any, dim: int = 0) -> Any:
    """The tensors one after another along `dim`; their other extents agree.

    >>> import flambeau
    >>> flambeau.cat([flambeau.ones(2), flambeau.zeros(1)])
    tensor([1., 1., 0.])
    """
    _check_list("cat", tensors)
    tensors = tuple(tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    shapes = []
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got "
                            f"{type(t).__name__}")
        shape = t._array.shape
        if not shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        shapes.append(shape)
    first = next((s for s in shapes if s != (0,)), None)
    if first is None:                       # nothing at all: then any dimension will do
        return tensors, 0
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
    return tensors, dim


@compiled("stack")
def _stack(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    return _cat([views.expand_dims(np.ascontiguousarray(a) if a.ndim else a, dim)
                 for a in arrays], dim)


def _stackable(tensors: Any, dim: int) -> tuple[Any, int]:
    _check_any("stack", tensors)
    shape = tensors[0]._array.shape
    for i, t in enumerate(tensors):
        if t._array.shape != shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(shape)} "
                               f"at entry 0 and {list(t._array.shape)} at entry {i}")
    return tuple(tensors), wrap_dim(dim, len(shape) + 1)


stack = op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    kernel=_stack, kind="linear", new_dims="dim", canonical=_stackable, kernel_checks=True,
    method=False, vjp=lambda grad, tensors_shapes, dim: [
        select(grad, dim, i) for i in range(len(tensors_shapes))],
    batch=lambda size, dims, tensors, dim: (stack(
        [expand(t, (size, *t._array.shape)) if d is None else movedim(t, d, 0)
         for t, d in zip(tensors, dims)], dim + 1), 0),
    doc="Tensors of one shape along a new dimension `dim`.")


def _stacked(name: str, rank: int, dim: int, doc: str, aliases: tuple[str, ...] = ()) -> Any:
    def function(tensors: Any, *, out: Any = None) -> Tensor:
        _check_any(name, tensors)
        raised = [at_least(t, rank) for t in tensors]
        along = 0 if name == "hstack" and raised and raised[0].ndim == 1 else dim
        result = cat(raised, along)
        return result if out is None else basis.into(out, public_function.op, result)
    function.__name__, function.__doc__ = name, doc
    public_function = composite(function, aliases=aliases)
    return public_function


def _check_any(name: str, tensors: Any) -> None:
    if not isinstance(tensors, Tensor) and not len(tensors):
        raise RuntimeError(f"{name} expects a non-empty TensorList")


def at_least(tensor: Tensor, rank: int) -> Tensor:
    n = tensor.ndim
    if n >= rank:
        return tensor
    if n == 0:
        return reshape(tensor, (1,) * rank)
    if n == 1:
        tensor = unsqueeze(tensor, 0)
    return unsqueeze(tensor, -1) if rank == 3 else tensor


hstack = _stacked("hstack", 1, 1, "Tensors side by side: along dimension 1 (0 for vectors).")
vstack = _stacked("vstack", 2, 0, "Tensors below each other: along dimension 0, as rows.",
                  ("row_stack",))
dstack = _stacked("dstack", 3, 2, "Tensors behind each other: along dimension 2.")


@composite
def column_stack(tensors: Any, *, out: Any = None) -> Tensor:
    """Tensors side by side, vectors as columns."""
    _check_any("column_stack", tensors)
    result = hstack([reshape(t, (t.numel(), 1)) if t.ndim <= 1 else t for t in tensors])
    return result if out is None else basis.into(out, column_stack.op, result)


def _at_least(rank: int) -> Any:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1:
            if isinstance(tensors[0], Tensor):
                return at_least(tensors[0], rank)
            tensors = tuple(tensors[0])
        return tuple(at_least(t, rank) for t in tensors)
    function.__name__ = f"atleast_{rank}d"
    function.__doc__ = f"Views with at least {rank} dimension{'s' * (rank > 1)}."
    return composite(function)


atleast_1d, atleast_2d, atleast_3d = (_at_least(r) for r in (1, 2, 3))

NO_DIMENSION = IndexError("Dimension specified as 0 but tensor has no dimensions")

# ---- cutting -------------------------------------------------------------------------------------


def _unbound(input: Tensor, dim: int = 0) -> tuple[Tensor, int]:
    if not input._array.ndim:
        raise NO_DIMENSION
    return input, wrap_dim(dim, input._array.ndim)


unbind = op(
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    kernel=views.unbind, kind="linear", dims="dim", canonical=_unbound, kernel_checks=True,
    vjp=lambda grad, self_shape, dim: stack(
        [basis.new_zeros(next(h for h in grad if h is not None),
                         self_shape[:dim] + self_shape[dim + 1:]) if g is None else g
         for g in grad], dim),
    doc="The slices of `input` along `dim`, as a tuple of views.")


def split_back(grad: list[Any], self_shape: Any, sizes: Any, dim: int) -> Any:
    known = next(g for g in grad if g is not None)
    return cat([basis.new_zeros(known, self_shape[:dim] + (n,) + self_shape[dim + 1:])
                if g is None else g for g, n in zip(grad, sizes)], dim)


@linear(views.split_with_sizes, params=("sizes", "dim"), view=True, returns=tuple, dims="dim",
        method=False, namespace=None, node_name="SplitBackward0", vjp=split_back)
def split_sizes(input: Tensor, sizes: tuple[int, ...], dim: int) -> Any:
    return input, sizes, dim


def _sized(input: Tensor, sizes: Any, dim: int = 0) -> tuple[Tensor, tuple[int, ...], int]:
    if not input._array.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    sizes, dim = size_of((sizes,)), wrap_dim(dim, input._array.ndim)
    n = input._array.shape[dim]
    if sum(sizes) != n:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n} (input "
                           f"tensor's size at dimension {dim}), but got split_sizes={list(sizes)}")
    if sizes and min(sizes) < 0:
        raise RuntimeError("split_with_sizes expects split_sizes have only non-negative entries, "
                           f"but got split_sizes={list(sizes)}")
    return input, sizes, dim


split_with_sizes = op(
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    kernel=views.split_with_sizes, kind="linear", dims="dim", canonical=_sized, kernel_checks=True,
    vjp=lambda grad, self_shape, split_sizes, dim: split_back(grad, self_shape, split_sizes, dim),
    doc="Parts of the given extents along `dim`, as views.")


@composite(method=True)
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along `dim`: of one extent (the last may be smaller), or of given extents.

    >>> import flambeau
    >>> [len(part) for part in flambeau.arange(5).split(2)]
    [2, 2, 1]
    """
    if isinstance(split_size_or_sections, Tensor) and split_size_or_sections.numel() == 1:
        split_size_or_sections = int(split_size_or_sections)
    if not isinstance(split_size_or_sections, int):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    return split_sizes.op.call(*split_arguments(tensor, split_size_or_sections, dim))


def split_arguments(tensor: Tensor, split_size: int, dim: int = 0) -> Any:
    """A tensor, the extents of its parts and their dimension."""
    size = split_size
    if not tensor._array.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, tensor._array.ndim)
    n = tensor._array.shape[dim]
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and n:
        raise RuntimeError("split_size can only be 0 if dimension size is 0, but got dimension "
                           f"size of {n}")
    parts = max((n + size - 1) // size, 1) if size else 1
    return tensor, tuple([min(size, n - i * size) if size else 0 for i in range(parts)]), dim


def _chunk(input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    arguments = chunk_arguments(input, chunks, dim)
    known = arguments[1] != (0,) * chunks
    return (split_sizes.op.call if known else split_with_sizes)(*arguments)


chunk = op(
    "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", body=_chunk,
    doc="At most `chunks` parts of equal extent along `dim`, the last possibly smaller, as views.")


def chunk_arguments(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """A tensor, the extents of its chunks and their dimension."""
    if not input._array.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, input._array.ndim)
    n = input._array.shape[dim]
    size = (n + chunks - 1) // chunks
    return split_arguments(input, size, dim) if size else (input, (0,) * chunks, dim)


@composite(method=True)
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`n` parts whose extents differ by at most one, or parts cut at given indices, as views."""
    if not input.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a "
                           "tensor with 0 dims")
    dim = wrap_dim(dim, input.ndim)
    n, how = input._array.shape[dim], indices_or_sections
    if isinstance(how, Tensor):
        if how.ndim > 1:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a "
                               "zero-dimensional or one-dimensional tensor, but got a tensor with "
                               f"{how.ndim} dims")
        if how.dtype != int64:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of "
                               f"long, but got {type_name(how.dtype)}")
        how = how.item() if how.ndim == 0 else how.tolist()
    elif not isinstance(how, (int, tuple, list)):
        raise no_overload("tensor_split", input, how)
    if isinstance(how, int):
        if how <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {how}")
        bounds = [i * (n // how) + min(i, n % how) for i in range(how + 1)]
    else:
        bounds = [0, *how, n]
    return tuple([cut(input, (*ALL[:dim], slice(a, b), Ellipsis))
                  for a, b in itertools.pairwise(bounds)])


def no_overload(name: str, *args: Any) -> TypeError:
    """Arguments of types that none of a function's signatures has."""
    kinds = ", ".join([type(a).__name__ for a in args])
    return TypeError(f"{name}() received an invalid combination of arguments - got ({kinds})")


def _cut_along(name: str, dim: int) -> Any:
    def function(input: Tensor, *indices_or_sections: Any) -> tuple[Tensor, ...]:
        least = {"hsplit": 1, "vsplit": 2, "dsplit": 3}[name]
        if input.ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, "
                               f"but got a tensor with {input.ndim} dimensions!")
        along = 0 if name == "hsplit" and input.ndim == 1 else dim
        how, n = indices_or_sections, input._array.shape[along]
        how = how[0] if len(how) == 1 else how
        if isinstance(how, Tensor) and not how.ndim:
            how = int(how)
        if not isinstance(how, (int, tuple, list)):
            raise no_overload(name, input, how)
        if isinstance(how, int) and (not how or n % how):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {along}, but the "
                               f"size of the dimension {n} is not divisible by the split_size "
                               f"{how}!")
        return tensor_split(input, how, along)
    function.__name__, function.__doc__ = name, f"`tensor_split` along dimension {dim}."
    return composite(function, method=True)


hsplit, vsplit, dsplit = (_cut_along(n, d) for n, d in (("hsplit", 1), ("vsplit", 0),
                                                        ("dsplit", 2)))


def _narrow_from_each(input: Tensor, dim: int, start: Tensor, length: int, n: int) -> Tensor:
    """`narrow` where vmap starts each slice at a place of its own, which gives no view."""
    starts = values_below(start)
    wrong = starts[(starts < -n) | (np.where(starts < 0, starts + n, starts) + length > n)]
    if wrong.size:
        raise RuntimeError(f"start ({wrong[0]}) + length ({length}) exceeds dimension size ({n}).")
    places = basis.where(start < 0, start + n, start) + wrap(np.arange(length))
    return index_select(input, dim, places)


def _narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    shape = input._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start.ndim or start._array.dtype.kind not in "ui"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    dim = wrap_dim(dim, len(shape))
    n = shape[dim]
    if hasattr(start, "_bdim"):             # one for each slice under vmap
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
    return cut(input, (*ALL[:dim], slice(start, start + length), Ellipsis))


narrow = op(
    "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
    body=_narrow, doc="`length` slices of `input` along `dim`, from `start` on, as a view.")


# ---- flattening and its inverse ------------------------------------------------------------------


def _flatten(input: Tensor, start_dim: int, end_dim: int) -> Tensor:
    shape = input._array.shape
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


@composite(method=True)
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Dimension `dim` as several; one of `sizes` may be -1."""
    shape = input._array.shape
    dim, sizes = wrap_dim(dim, len(shape)), size_of((sizes,))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if -1 in sizes:
        rest = prod([s for s in sizes if s != -1])
        sizes = tuple([shape[dim] // rest if s == -1 and rest else s for s in sizes])
    if prod(sizes) != shape[dim]:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size "
                           f"of dim {dim} ({shape[dim]}) in the input tensor")
    return view(input, (*shape[:dim], *sizes, *shape[dim + 1:]))


ravel = op("ravel(Tensor(a) self) -> Tensor(a)",
           body=lambda input: reshape(basis.contiguous(input), (-1,)),
           doc="All elements as a vector; a view if possible.")
view_as = op("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", function=False,
             body=lambda input, other: view(input, other._array.shape),
             doc="`view` with the shape of `other`.")
reshape_as = op("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", function=False,
                body=lambda input, other: reshape(input, other._array.shape),
                doc="`reshape` with the shape of `other`.")
expand_as = op("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", function=False,
               body=lambda input, other: expand(input, other._array.shape),
               doc="`expand` to the shape of `other`.")
broadcast_to = op("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
                  body=lambda input, size: expand(input, size), doc="`expand` to `size`.")


@composite
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape; those that have it already are given back."""
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*[t._array.shape for t in tensors])
    return tuple(t if t._array.shape == shape else expand(t, shape) for t in tensors)


# ---- repeating, turning --------------------------------------------------------------------------


def _repetitions(input: Tensor, repeats: Any) -> tuple[Tensor, tuple[int, ...]]:
    repeats, shape = tuple(repeats), tuple(input._array.shape)
    if len(repeats) < len(shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of "
                           "dimensions of tensor")
    if repeats and min(repeats) < 0:
        wide = [r * n for r, n in zip(repeats, (1,) * (len(repeats) - len(shape)) + shape)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(wide)}: {wide}")
    return input, repeats


def _repeat_back(grad: Tensor, shape: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    """The sum over all repetitions."""
    if 0 in repeats:
        return basis.new_zeros(grad, shape)
    extra = len(repeats) - len(shape)
    sizes = (*repeats[:extra], *itertools.chain(*zip(repeats[extra:], shape)))
    dims = (*range(extra), *range(extra, len(sizes), 2))
    return basis.sum(reshape(grad, sizes), dims, False) if dims else grad


def _repeat_batched(size: int, dims: Any, self: Tensor, repeats: tuple[int, ...]) -> Any:
    self = movedim(self, dims[0], 0)
    n, *shape = self._array.shape
    self = reshape(self, (n, *(1,) * (len(repeats) - len(shape)), *shape))
    return repeat(self, (1, *repeats)), 0


repeat = op(
    "repeat(Tensor self, SymInt[] repeats) -> Tensor",
    kernel=rearranging.repeat, kind="linear", canonical=_repetitions, kernel_checks=True,
    function=False, batch=_repeat_batched,
    d_self=lambda grad, self_shape, repeats: _repeat_back(grad, self_shape, repeats),
    doc="A copy repeated along each dimension; more repeats than dimensions add some in front.")
repeat = Tensor.repeat
tile = op("tile(Tensor self, SymInt[] dims) -> Tensor", out=False,
          body=lambda input, dims: repeat(input, (1,) * (input._array.ndim - len(dims))
                                          + tuple(dims)),
          doc="`repeat`, with missing repeats counted as 1.")


def _check_repeats(repeats: Tensor, alone: bool) -> None:
    """Can these be counts? `alone` where nothing else is given."""
    if alone and repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.dtype not in (int32, int64):
        raise NotImplementedError("\"repeat_interleave_cpu\" not implemented for "
                                  f"'{type_name(repeats.dtype)}'")
    if not repeats.is_meta and (repeats < 0).any():
        raise RuntimeError("repeats can not be negative")


@compiled("repeated_places")
def repeated_places(counts: np.ndarray) -> np.ndarray:
    """The number of each count, as often as it says."""
    return np.repeat(np.arange(len(counts)), counts)


def _repeated(n: int, counts: np.ndarray, output_size: int | None) -> np.ndarray:
    """The numbers below n, each as many times as is counted, all in all `output_size`."""
    places = repeated_places(np.asarray(counts))
    if output_size not in (None, len(places)):
        raise RuntimeError("allocated size does not match required size")
    return places


@composite(method=True)
def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Each slice along `dim` repeated; of the flattened tensor without `dim`."""
    counted = input if repeats is None else repeats
    hollow = isinstance(counted, Tensor) and counted.is_meta
    if hollow and output_size is None:
        raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
    if isinstance(counted, Tensor):
        _check_repeats(counted, repeats is None)
    if repeats is None:
        counts = input._array
        return input.new_empty((output_size,), dtype=int64) if hollow else \
            wrap(_repeated(len(counts), counts, output_size))
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    if not input.ndim:
        raise NO_DIMENSION
    n = input._array.shape[wrap_dim(dim, input.ndim)]
    counts = repeats._array if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.ndim == 1 and counts.size not in (1, n):
        raise RuntimeError(f"repeats must have the same size as input along dim, but got "
                           f"repeats.size(0) = {counts.size} and input.size({dim}) = {n}")
    if not isinstance(repeats, Tensor) and (counts < 0).any():
        raise RuntimeError("Repeats must be non-negative")
    if isinstance(repeats, int) and output_size not in (None, n * repeats):
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {n * repeats} but "
                           f"got {output_size}")
    if isinstance(repeats, int):
        dim, shape = wrap_dim(dim, input.ndim), tuple(input._array.shape)
        wide = expand(unsqueeze(input, dim + 1), (*shape[:dim + 1], repeats, *shape[dim + 1:]))
        return reshape(basis.clone(wide, memory_format=type_info.contiguous_format),
                       (*shape[:dim], n * repeats, *shape[dim + 1:]))
    if hollow:
        return index_select(input, dim, repeat_interleave(repeats, output_size=output_size))
    places = _repeated(n, counts if counts.ndim and counts.size == n
                       else np.broadcast_to(counts.reshape(-1)[:1], (n,)), output_size)
    if input._array.ndim == 1 and input._array.dtype.char in characters("U"):
        return input[wrap(places)]       # which `index_select` does not take
    return index_select(input, dim, wrap(places))


flip = op("flip(Tensor self, int[] dims) -> Tensor", kernel=rearranging.flip, kind="linear",
          some_dims="dims", out=False, d_self=lambda grad, dims: flip(grad, dims),
          doc="The order of elements reversed along the dimensions `dims`.")


def _turned_over(name: str, dim: int, doc: str) -> Any:
    def body(input: Tensor) -> Tensor:
        if input._array.ndim <= dim:
            raise RuntimeError(f"Input must be >= {dim + 1}-d.")
        return flip(input, (dim,))
    return op(f"{name}(Tensor self) -> Tensor", body=body, out=False, doc=doc)


fliplr = _turned_over("fliplr", 1, "The order of columns reversed.")
flipud = _turned_over("flipud", 0, "The order of rows reversed.")


def _rolled(input: Tensor, shifts: Any, dims: Any) -> tuple[Tensor, Any, Any]:
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(dims) != len(shifts) and (dims or len(shifts) != 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:"
                           f"{len(dims)}")
    if not input._array.size or not dims:
        return input, shifts, ()
    if not input.ndim:
        raise NO_DIMENSION
    return input, shifts, tuple([wrap_dim(d, input.ndim) for d in dims])


def _roll_batched(size: int, dims: Any, self: Tensor, shifts: Any, places: Any) -> Any:
    self = movedim(self, dims[0], 0)
    if places:
        return roll(self, shifts, tuple([d + 1 if d >= 0 else d for d in places])), 0
    return reshape(roll(reshape(self, (size, -1)), shifts, (1,)), self._array.shape), 0


roll = op(
    "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    kernel=rearranging.roll, kind="linear", canonical=_rolled, kernel_checks=True, out=False,
    batch=_roll_batched,
    d_self=lambda grad, shifts, dims: roll(grad, tuple([-s for s in shifts]), dims),
    doc="Elements moved along dimensions, those that fall off coming in at the other end.")


def _quarter_turns(input: Tensor, k: int, dims: Any) -> tuple[Tensor, int, tuple[int, ...]]:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    a, b = wrap_dim(dims[0], input.ndim), wrap_dim(dims[1], input.ndim)
    if a == b:
        raise RuntimeError("expected rotation dims to be different, but got dim0 = "
                           f"{dims[0]} and dim1 = {dims[1]}")
    return input, k, (a, b)


rot90 = op("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", kernel=rearranging.rot90,
           kind="linear", some_dims="dims", canonical=_quarter_turns, out=False,
           d_self=lambda grad, k, dims: rot90(grad, -k, dims),
           doc="Turned by 90° `k` times in the plane of two dimensions.")


# ---- diagonals and triangles ---------------------------------------------------------------------


@linear(rearranging.embedded_diagonal, params=("shape", "offset", "dim1", "dim2"),
        method=False, namespace=None, dims="dim1 dim2", shapes="shape",
        name="diagonal_backward",
        d_self=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2))
def diagonal_backward(input: Tensor, shape: Any, offset: int, dim1: int, dim2: int) -> Any:
    return input, tuple(shape), offset, dim1, dim2


def _of_two(input: Tensor, offset: int = 0, dim1: int = 0,
            dim2: int = 1) -> tuple[Tensor, int, int, int]:
    n = input._array.ndim
    a, b = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input, offset, a, b


diagonal = op(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    kernel=views.diagonal, kind="linear", dims="dim1 dim2", canonical=_of_two, kernel_checks=True,
    d_self=lambda grad, self_shape, offset, dim1, dim2: diagonal_backward(
        grad, self_shape, offset, dim1, dim2),
    doc="The diagonal of two dimensions as a last one, a view; `offset` > 0 is above the main one.")


def _embedding(input: Tensor, offset: int, dim1: int, dim2: int) -> tuple[Tensor, int, int, int]:
    n = input._array.ndim + 1
    a, b = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input, offset, a, b


diag_embed = op(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    kernel=rearranging.diagonal_embedding, kind="linear", new_dims="dim1 dim2",
    canonical=_embedding, kernel_checks=True, out=False,
    d_self=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
    doc="The last dimension as the diagonal of two new ones, zeros elsewhere.")


def _diag(input: Tensor, diagonal: int) -> Tensor:
    if input._array.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return diag_embed(input, diagonal) if input._array.ndim == 1 else _diagonal_copy(
        input, diagonal)


@one_node(name="DiagonalBackward0_copy")
def _diagonal_copy(input: Tensor, offset: int) -> Tensor:
    return basis.clone(diagonal_of(input, offset))


diag = op("diag(Tensor self, int diagonal=0) -> Tensor", body=_diag,
          doc="A matrix with a vector on its diagonal, or the diagonal of a matrix.")


def diagonal_of(input: Tensor, offset: int) -> Tensor:
    return diagonal(input, offset, 0, 1)


diagflat = op("diagflat(Tensor self, int offset=0) -> Tensor", out=False,
              body=lambda input, offset: diag(reshape(basis.contiguous(input), (-1,)), offset),
              doc="A matrix with all elements of `input` on a diagonal.")


def _triangle(name: str, kernel: Any, side: str) -> Any:
    def arguments(input: Tensor, diagonal: int) -> tuple[Tensor, int]:
        if input._array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return input, diagonal

    function = op(
        f"{name}(Tensor self, SymInt diagonal=0) -> Tensor", kernel=kernel, kind="linear",
        inplace=True, canonical=arguments, kernel_checks=True,
        d_self=lambda grad, diagonal: function(grad, diagonal),
        batch=lambda size, dims, self, diagonal: (
            function(movedim(self, dims[0], 0), diagonal), 0),
        doc=f"Zeros {side} a diagonal of the last two dimensions.")
    return function


tril = _triangle("tril", rearranging.tril, "above")
triu = _triangle("triu", rearranging.triu, "below")

# ---- windows and grids ---------------------------------------------------------------------------


def _windows_back(self: np.ndarray, shape: Any, dim: int, size: int, step: int) -> np.ndarray:
    if not shape:
        return self.sum().astype(self.dtype)
    r = np.zeros(shape, self.dtype)
    lead = (slice(None),) * dim
    count = self.shape[dim]
    for i in range(size):
        r[(*lead, slice(i, i + count * step, step))] += self[..., i]
    return r


@linear(_windows_back, method=False, namespace=None, dims="dim", shapes="shape",
        d_self=lambda grad, dim, size, step: unfold(grad, dim, size, step))
def unfold_backward(input: Tensor, shape: Any, dim: int, size: int, step: int) -> Any:
    return input, tuple(shape), dim, size, step


def _unfolded(input: Tensor, dimension: int, size: int, step: int) -> tuple[Any, ...]:
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
    kernel=views.windows, kind="linear", dims="dimension", canonical=_unfolded,
    kernel_checks=True, function=False,
    d_self=lambda grad, self_shape, dimension, size, step: unfold_backward(
        grad, self_shape, dimension, size, step),
    doc="""All windows of `size` slices along a dimension, `step` apart, as a view with one more
    dimension.""")


@composite
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Vectors expanded to a grid: one tensor for each coordinate.

    `indexing` "ij" (rows first) or "xy" (the first two exchanged).
    """
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        import warnings
        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the "
                      "indexing argument.", UserWarning, stacklevel=3)
        indexing = "ij"
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
    if len({t.dtype for t in tensors}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    shape = tuple([t.numel() for t in tensors])
    grids = [expand(reshape(t, (1,) * i + (-1,) + (1,) * (len(shape) - i - 1)), shape)
             for i, t in enumerate(tensors)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


meshgrid.__kwdefaults__ = {"indexing": None}     # libraries look there for the argument


def _blocks_back(grad: Tensor, tensors_shapes: list[Any]) -> list[Tensor]:
    parts, row, column = [], 0, 0
    for shape in tensors_shapes:
        m, n = (1,) * (2 - len(shape)) + shape
        part = cut(cut(grad, (slice(row, row + m), Ellipsis)),
                   (slice(None), slice(column, column + n), Ellipsis))
        parts.append(reshape(part, shape))
        row, column = row + m, column + n
    return parts


def _blocks_of_each(size: int, dims: Any, tensors: Any) -> Tensor:
    """The matrices of each example, between zeros."""
    matrices = [expand(t, (size, *t._array.shape)) if d is None else movedim(t, d, 0)
                for t, d in zip(tensors, dims)]
    matrices = [reshape(m, (size, *(1,) * (3 - m.ndim), *m._array.shape[1:])) for m in matrices]
    columns, before, bands = sum([m._array.shape[2] for m in matrices]), 0, []
    for m in matrices:
        height, width = m._array.shape[1:]
        sides = [basis.new_zeros(m, (size, height, n)) for n in (before, columns - before - width)]
        bands.append(cat([sides[0], m, sides[1]], 2))
        before += width
    return cat(bands, 1)


@linear(rearranging.block_diag, tensors=("tensors",), params=(), variadic=True, method=False,
        namespace=None, name="_block_diag", node_name="BlockDiagBackward0", vjp=_blocks_back,
        batch=lambda size, dims, tensors: (_blocks_of_each(size, dims, tensors), 0))
def _block_diag(tensors: Any) -> Any:
    return (tuple(tensors),)


@composite
def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given matrices along its diagonal."""
    if not tensors:
        return wrap(np.empty((1, 0), default_float()))
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got "
                            f"{type(t).__name__}")
        if t._array.ndim > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                               f"Input {i} has {t._array.ndim} dimensions")
    return _block_diag.op.call(tuple(together(*tensors)))


@composite
def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples of elements of the given vectors, one a row."""
    for t in tensors:
        if t._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t._array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(g, (-1,)) for g in meshgrid(*tensors, indexing="ij")], 1)


@composite
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of `r` elements of a vector, one a row."""
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return wrap(np.empty(0, input._array.dtype))
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    refuse(input._array, "U" if r else "", "masked_select")
    rows = np.array(list(pick(range(input.numel()), r)), np.int64).reshape(-1, r)
    return input[wrap(rows)]


# ---- writes to the shape alone -------------------------------------------------------------------

def _turned(self: Tensor) -> Tensor:
    if self.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return transpose(self, 0, 1) if self.ndim == 2 else self


for _name in ("squeeze", "unsqueeze", "transpose", "swapaxes", "swapdims"):
    publish_inplace_view(_name, getattr(Tensor, _name))
publish_inplace_view("t", _turned)
basis.unbind, basis.stack, basis.cat = unbind, stack, cat
__all__ = ["cat", "permute_to", "primitive", "stack"]
