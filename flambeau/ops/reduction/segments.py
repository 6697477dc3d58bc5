"""Reductions over consecutive stretches of a dimension, which lengths or boundaries say."""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau.core.op import public
from flambeau.core.promotion import is_float8, type_name
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.moving.indexing import neutral
from flambeau.ops.indexing.gather import scatter_reduce
from flambeau.ops.node_names import one_node

_OTHER_NAMES = {"max": "amax", "min": "amin"}


def _segment_offsets_kernel(lengths: np.ndarray, extent: int, unsafe: bool) -> np.ndarray:
    if not unsafe:
        if (lengths < 0).any():
            raise RuntimeError("lengths contains negative value!")
        if (lengths.sum(-1) != extent).any():
            raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum "
                               "to data.size(lengths.dim()-1) when !unsafe.")
    ends = np.cumsum(lengths, -1)
    return np.concatenate([np.zeros_like(ends[..., :1]), ends], -1)


def _segments_kernel(self: np.ndarray, extent: int) -> np.ndarray:
    """Which segment each place belongs to; those outside all come after the last."""
    places = np.arange(extent)
    if self.ndim == 1 and (self[1:] >= self[:-1]).all():
        found = np.searchsorted(self[1:], places, "right")
        found[places < self[0]] = len(self) - 1
        return found
    ends = self[..., None, 1:]
    found = (ends <= places[:, None]).sum(-1)
    found[places < self[..., :1]] = self.shape[-1] - 1
    return found


segment_offsets = op(
    "segment_offsets(Tensor self, int extent, bool unsafe) -> Tensor",
    kernel=_segment_offsets_kernel, out=False, function=False, method=False,
    shape=lambda self, extent, unsafe: (*self.shape[:-1], self.shape[-1] + 1),
    batch=lambda size, dims, self, extent, unsafe: (
        segment_offsets(self.movedim(dims[0], 0), extent, unsafe), 0))
segments_of = op(
    "segments_of(Tensor self, int extent) -> Tensor", kernel=_segments_kernel, out=False,
    function=False, method=False,
    batch=lambda size, dims, self, extent: (
        segments_of(self.movedim(dims[0], 0), extent), 0))


_GIVEN = ("(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
          "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor")


@op(f"segment_reduce{_GIVEN}", method=False, out=False)
def segment_reduce(data: Tensor, reduce: str, lengths: Tensor | None, indices: Tensor | None,
                   offsets: Tensor | None, axis: int, unsafe: bool, initial: Any) -> Tensor:
    """Reduces each of the consecutive segments that `axis` of `data` is cut into.

    `lengths` are the segments' extents, or `offsets` their boundaries, one more than there are
    segments; their last dimension is that of `axis`, those before it are as in `data`. `reduce` is
    "sum", "mean", "max", "min" or "prod", and `initial` what it starts from. `unsafe` skips the
    check that the segments are all of `axis`.

    >>> import flambeau
    >>> x = flambeau.tensor([1., 2., 3., 4.])
    >>> flambeau.segment_reduce(x, "sum", lengths=flambeau.tensor([3, 1]))
    tensor([6., 4.])
    """
    axis = wrap_dim(axis, data.ndim)
    if _OTHER_NAMES.get(reduce, reduce) not in ("sum", "mean", "prod", "amax", "amin"):
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got "
                           f"{reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    given, name = (lengths, "lengths") if offsets is None else (offsets, "offsets")
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if axis != given.ndim - 1:
        raise RuntimeError("segment_reduce(): Expected axis to be the last dimension of "
                           f"{name} but got {axis}.")
    if given.dtype not in (flambeau.int32, flambeau.int64):
        raise NotImplementedError(f'"_segment_reduce_{name}_cpu_kernel1" not implemented for '
                                  f"'{type_name(given.dtype)}'")
    if not data.dtype.is_floating_point or is_float8(data.dtype):
        raise NotImplementedError('"_segment_reduce_cpu" not implemented for '
                                  f"'{type_name(data.dtype)}'")
    extent = data.shape[axis]
    if offsets is None:
        offsets = segment_offsets(lengths, extent, unsafe)
    return _reduce_segments(data, reduce, offsets, axis, initial)


public["torch"]["_segment_reduce"] = segment_reduce


@one_node(name="SegmentReduceBackward0")
def _reduce_segments(data: Tensor, reduce: str, offsets: Tensor, axis: int, initial: Any) -> Tensor:
    kind = "sum" if reduce == "mean" else _OTHER_NAMES.get(reduce, reduce)
    empty = neutral(kind, np.dtype(np.float64))
    count = offsets.shape[-1] - 1
    trailing = (1,) * (data.ndim - axis - 1)
    index = segments_of(offsets, data.shape[axis])
    index = index.reshape(*index.shape, *trailing).expand(data.shape)
    shape = (*data.shape[:axis], count + 1, *data.shape[axis + 1:])     # one more for what is left
    result = scatter_reduce(flambeau.full(shape, empty, dtype=data.dtype), axis, index, data,
                            kind, include_self=kind == "sum").narrow_copy(axis, 0, count)
    if initial is not None:
        start = flambeau.full_like(result, initial)
        if kind in ("amax", "amin"):        # a tie is the data's
            before = start > result if kind == "amax" else start < result
            result = flambeau.where(before, start, result)
        else:
            result = result + start if kind == "sum" else result * start
    if reduce != "mean":
        return result
    extents = offsets.diff(dim=-1)
    extents = extents.reshape(*extents.shape, *trailing)
    if initial is not None:
        extents = extents.clamp(min=1)
    return result / extents.to(data.dtype)
