"""Elements in other places: repeated, turned, moved around."""
from __future__ import annotations

import itertools
from math import prod
from typing import Any

import numpy as np

from flambeau.core import late_bound
from flambeau.core.dtypes import int32, int64
from flambeau.core.promotion import type_name
from flambeau.core.shapes import refuse_negative, wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.core.type_info import contiguous_format
from flambeau.dispatch.declaration import op
from flambeau.kernels._extension import compiled
from flambeau.kernels.moving import rearranging
from flambeau.kernels.refused import characters
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.indexing.slices import index_select
from flambeau.ops.view.conversion import clone
from flambeau.ops.view.reshaping import reshape, view
from flambeau.ops.view.shape import expand, movedim, unsqueeze

# ---- repeated ------------------------------------------------------------------------------------


def _prepare_repeat(input: Tensor, repeats: Any) -> tuple[Tensor, tuple[int, ...]]:
    repeats, shape = tuple(repeats), tuple(input._array.shape)
    if len(repeats) < len(shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of "
                           "dimensions of tensor")
    refuse_negative([r * n for r, n in zip(repeats, (1,) * (len(repeats) - len(shape)) + shape)])
    return input, repeats


def _repeat_vjp(grad: Tensor, shape: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    """The sum over all repetitions."""
    if 0 in repeats:
        return new_zeros(grad, shape)
    sizes: list[int] = []
    dims = []
    for times, n in itertools.zip_longest(reversed(repeats), reversed(shape)):
        if n is not None:
            sizes.append(n)
        if times != 1 or n is None:
            dims.append(len(sizes))
            sizes.append(times)
    if not dims:
        return grad
    dims = [len(sizes) - 1 - d for d in dims]
    return late_bound.sum_over(reshape(grad, tuple(sizes[::-1])), tuple(dims[::-1]), False)


def _repeat_batched(size: int, dims: Any, self: Tensor, repeats: tuple[int, ...]) -> Any:
    self = movedim(self, dims[0], 0)
    n, *shape = self._array.shape
    self = reshape(self, (n, *(1,) * (len(repeats) - len(shape)), *shape))
    return repeat(self, (1, *repeats)), 0


repeat = op(
    "repeat(Tensor self, SymInt[] repeats) -> Tensor",
    kernel=rearranging.repeat, kind="linear", canonical=_prepare_repeat, kernel_checks=True,
    function=False, batch=_repeat_batched,
    d_self=lambda grad, self_shape, repeats: _repeat_vjp(grad, self_shape, repeats),
    doc="A copy repeated along each dimension; more repeats than dimensions add some in front.")
repeat = Tensor.repeat
tile = op("tile(Tensor self, SymInt[] dims) -> Tensor", out=False,
          body=lambda input, dims: repeat(input, (1,) * (input._array.ndim - len(dims))
                                          + tuple(dims)),
          doc="`repeat`, with missing repeats counted as 1.")


def _check_repeats(repeats: Tensor) -> None:
    """Can these be counts?"""
    if repeats.dtype not in (int32, int64):
        raise NotImplementedError("\"repeat_interleave_cpu\" not implemented for "
                                  f"'{type_name(repeats.dtype)}'")
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")


@compiled("repeated_places")
def repeated_places(counts: np.ndarray) -> np.ndarray:
    """The number of each count, as often as it says."""
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    return np.repeat(np.arange(len(counts)), counts)


def _prepare_repeats(repeats: Tensor, output_size: int | None) -> tuple[Tensor, int | None]:
    if repeats.is_meta and output_size is None:
        raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
    _check_repeats(repeats)
    return repeats, output_size


def _repeat_interleave_batched(size: int, dims: Any, repeats: Tensor,
                               output_size: int | None) -> Any:
    from flambeau.ops.indexing.counted_slices import repeated_places_batched

    return repeated_places_batched(size, dims, repeats, output_size)


def _repeat_interleave_kernel(repeats: np.ndarray, output_size: int | None) -> np.ndarray:
    places = repeated_places(repeats)
    if output_size not in (None, len(places)):
        raise RuntimeError("allocated size does not match required size")
    return places


def _repeat_interleave(input: Tensor, repeats: Any, dim: int | None,
                       output_size: int | None) -> Tensor:
    if isinstance(repeats, Tensor) and repeats._array.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    if not input._array.ndim and isinstance(repeats, Tensor):
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, input._array.ndim)
    return _repeat_each(input, repeats, at, output_size) if isinstance(repeats, int) \
        else _repeat_by_counts(input, repeats, dim, at, output_size)


def _repeat_each(input: Tensor, repeats: int, dim: int, output_size: int | None) -> Tensor:
    """Each slice as many times."""
    shape = input._array.shape
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    wrap_dim(dim + 1, len(shape) + 1 if shape else 0)   # where the repetitions get a dimension
    if output_size not in (None, shape[dim] * repeats):
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected "
                           f"{shape[dim] * repeats} but got {output_size}")
    wide = expand(unsqueeze(input, dim + 1), (*shape[:dim + 1], repeats, *shape[dim + 1:]))
    return view(clone(wide, memory_format=contiguous_format),
                (*shape[:dim], shape[dim] * repeats, *shape[dim + 1:]))


def _repeat_by_counts(input: Tensor, repeats: Tensor, dim: int, at: int,
                      output_size: int | None) -> Tensor:
    n = input._array.shape[at]
    size = repeats._array.size
    if repeats._array.ndim == 1 and size not in (1, n):
        raise RuntimeError(f"repeats must have the same size as input along dim, but got "
                           f"repeats.size(0) = {size} and input.size({dim}) = {n}")
    if repeats._array.ndim == 0 or size != n:
        repeats = expand(reshape(repeats, (1,)), (n,))
    places = repeat_interleave(repeats, output_size=output_size)
    if input._array.ndim == 1 and input._array.dtype.char in characters("U"):
        return input[places]             # which `index_select` does not take
    return index_select(input, at, places)


repeat_interleave = op(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, "
    "SymInt? output_size=None) -> Tensor",
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, "
    "SymInt? output_size=None) -> Tensor",
    body=_repeat_interleave, unsized=True, out=False,
    doc="Each slice along `dim` repeated; of the flattened tensor without `dim`.")
op("repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
   overload_of=repeat_interleave, kernel=_repeat_interleave_kernel, canonical=_prepare_repeats,
   method=False, out=False, batch=_repeat_interleave_batched,
   differentiable=False, unsized=lambda repeats, output_size: output_size is None,
   shape=lambda repeats, output_size: (output_size,))

# ---- turned --------------------------------------------------------------------------------------

def _flip_kernel_name(self: np.ndarray, dims: Any = ()) -> str:
    """Whole rows are copied; other elements are turned around one by one."""
    long = [i for i in range(self.ndim) if self.shape[i] > 1]
    turned = set(dims).intersection(long)
    rows = long and self.strides[long[-1]] == self.itemsize and long[-1] not in turned
    return "flip_cpu" if turned and not rows else ""


flip = op("flip(Tensor self, int[] dims) -> Tensor", kernel=rearranging.flip, kind="linear",
          some_dims="dims", out=False, refuses=(_flip_kernel_name, "UW8"),
          d_self=lambda grad, dims: flip(grad, dims),
          doc="The order of elements reversed along the dimensions `dims`.")


def _declare_flip(name: str, dim: int, doc: str) -> Any:
    def body(input: Tensor) -> Tensor:
        if input._array.ndim <= dim:
            raise RuntimeError(f"Input must be >= {dim + 1}-d.")
        return flip(input, (dim,))
    return op(f"{name}(Tensor self) -> Tensor", body=body, out=False, doc=doc)


fliplr = _declare_flip("fliplr", 1, "The order of columns reversed.")
flipud = _declare_flip("flipud", 0, "The order of rows reversed.")


def _prepare_roll(input: Tensor, shifts: Any, dims: Any) -> tuple[Tensor, Any, Any]:
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(dims) != len(shifts) and (dims or len(shifts) != 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:"
                           f"{len(dims)}")
    if not input._array.size:
        return input, (0,), ()
    if not dims:
        return input, shifts, ()
    if not input.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return input, shifts, tuple([wrap_dim(d, input.ndim) for d in dims])


def _roll_batched(size: int, dims: Any, self: Tensor, shifts: Any, places: Any) -> Any:
    self = movedim(self, dims[0], 0)
    if places:
        return roll(self, shifts, tuple([d + 1 if d >= 0 else d for d in places])), 0
    shape = self._array.shape
    return reshape(roll(reshape(self, (size, prod(shape[1:]))), shifts, (1,)), shape), 0


roll = op(
    "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    kernel=rearranging.roll, kind="linear", canonical=_prepare_roll, kernel_checks=True, out=False,
    batch=_roll_batched,
    d_self=lambda grad, shifts, dims: roll(grad, tuple([-s for s in shifts]), dims),
    doc="Elements moved along dimensions, those that fall off coming in at the other end.")


def _prepare_rot90(input: Tensor, k: int, dims: Any) -> tuple[Tensor, int, tuple[int, ...]]:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    a, b = wrap_dim(dims[0], input.ndim), wrap_dim(dims[1], input.ndim)
    if a == b:
        raise RuntimeError("expected rotation dims to be different, but got dim0 = "
                           f"{dims[0]} and dim1 = {dims[1]}")
    return input, k, (a, b)


def _rot90_kernel_name(self: np.ndarray, k: int, dims: Any) -> str:
    """What is turned around on the way, is flipped."""
    return _flip_kernel_name(self, ((), dims[1:], dims, dims[:1])[k % 4])


rot90 = op("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", kernel=rearranging.rot90,
           kind="linear", refuses=(_rot90_kernel_name, "UW8"), some_dims="dims",
           canonical=_prepare_rot90, out=False,
           d_self=lambda grad, k, dims: rot90(grad, -k, dims),
           doc="Turned by 90° `k` times in the plane of two dimensions.")
