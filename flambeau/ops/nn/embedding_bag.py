"""Sums, means and maxima of bags of embeddings."""
from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

import flambeau
from flambeau._support.scopes import within
from flambeau.core.autograd.grad_mode import no_grad
from flambeau.core.modes import grad_mode
from flambeau.core.promotion import is_half
from flambeau.core.tensor import Tensor, plain_types, wrap
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.declaration import checked
from flambeau.kernels.refused import characters
from flambeau.ops.nn.embedding import (
    NETWORK,
    check,
    embedding_backward,
    embedding_op,
    embedding_renorm_,
)
from flambeau.ops.pointwise.arithmetic import tensor_class_name


def _bags(indices: Tensor, offsets: Tensor, include_last: bool) -> tuple[Tensor, int]:
    """For each index its bag, and the number of bags."""
    starts = offsets._array
    n = indices._array.size
    if starts.size == 0:
        if include_last:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        return flambeau.zeros(0, dtype=flambeau.int64), 0
    bags = len(starts) - 1 if include_last else len(starts)
    if type(offsets) in plain_types:
        _check_offsets(starts, n)
    return flambeau.searchsorted(offsets[1:bags].contiguous(), flambeau.arange(
        n, dtype=offsets.dtype), right=True), bags


def _check_offsets(starts: np.ndarray, n: int) -> None:
    if starts[0] != 0:
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has "
                           f"to start from position 0. However, got {starts[0]}")
    if starts[-1] > n:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length {n} but got "
                           f"offsets[-1] of {starts[-1]}")
    if starts[-1] < 0:
        raise IndexError("index out of range in self")
    if (np.diff(starts) < 0).any():
        raise RuntimeError("Expected i < index_size to be true, but got false.  (Could this error "
                           "message be improved?  If so, please report an enhancement request to "
                           "PyTorch.)")


def _bag_sums(rows: Tensor, bag: Tensor, bags: int) -> Tensor:
    shape = (bags, rows._array.shape[1])
    return flambeau.zeros(shape, dtype=rows.dtype).index_add(0, bag, rows)


def _embedding_bag_parts(weight: Tensor, indices: Tensor, offsets: Tensor, per_sample_weights: Any,
                         scale_grad_by_freq: bool, mode: int, sparse: bool, include_last: bool,
                         padding_idx: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    ends = (include_last and padding_idx < 0) or not offsets._array.size
    if type(offsets) in plain_types and ends:
        used = int(offsets._array[-1]) if offsets._array.size else 0
        indices = indices[:used]        # none but those up to the last offset
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[:used]
    bag, bags = _bags(indices, offsets, include_last)
    first, bag_of_all = _first_wrong(indices, weight._array.shape[0]), bag
    if first is not None and (mode == 2 or padding_idx >= 0
                              or weight._array.dtype == np.float64):
        raise RuntimeError("embedding_bag: Expected idx >= 0 && idx < num_embeddings but found "
                           f"idx to be {first[1]}")
    if first is not None:
        raise RuntimeError(f"Index {first[0]} of input takes value {first[1]} which is not in the "
                           f"valid range [0, {weight._array.shape[0]})")
    keep = None
    if padding_idx >= 0 and type(indices) in plain_types:
        kept = (indices != padding_idx).nonzero().reshape(-1)
        indices, bag = indices[kept], bag[kept]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[kept]
    elif padding_idx >= 0:                  # how many are left is not the same for all examples
        keep = indices != padding_idx
    rows = embedding_op(weight, indices, -1, scale_grad_by_freq, sparse)
    ones = flambeau.ones_like(indices) if keep is None else keep.to(indices.dtype)
    counts = flambeau.zeros(bags, dtype=indices.dtype).index_add(0, bag, ones)
    if mode == 2:
        result, where = _bag_maxima(rows, indices, bag, bags, keep)
    else:
        if keep is not None:
            rows = rows.masked_fill(~keep.unsqueeze(1), 0)
        if per_sample_weights is not None:      # sums of half types are rounded once
            wide = flambeau.float32 if is_half(rows._array.dtype) else rows.dtype
            rows = rows.to(wide) * per_sample_weights.to(wide).unsqueeze(1)
        result = _bag_sums(rows, bag, bags).to(weight.dtype)
        if mode == 1:
            result = result / counts.clamp_min(1).unsqueeze(1).to(result.dtype)
        where = offsets
    empty = flambeau.empty(0, dtype=indices.dtype)
    return (result, empty if mode == 0 else bag_of_all, offsets if mode == 0 else counts, where)


def _first_wrong(indices: Tensor, rows: int) -> tuple[int, int] | None:
    """The place and the value of an index out of range, where values are known."""
    i = indices._array
    if type(indices) not in plain_types or not ((i < 0) | (i >= rows)).any():
        return None
    at = int(np.argmax((i < 0) | (i >= rows)))
    return at, int(i[at])


def _bag_maxima(rows: Tensor, indices: Tensor, bag: Tensor, bags: int,
                keep: Tensor | None) -> tuple[Tensor, Tensor]:
    """The largest element of each bag (0 of an empty one), and the index it came from: the first
    one of equal ones."""
    n, width = rows._array.shape
    spread = bag.unsqueeze(1).expand(n, width)
    known = rows.detach() if keep is None else rows.detach().masked_fill(~keep.unsqueeze(1), -inf)
    best = flambeau.full((bags, width), -inf, dtype=rows.dtype).scatter_reduce(
        0, spread, known, "amax")
    places = flambeau.arange(n).unsqueeze(1).expand(n, width)
    last = flambeau.where(known == best.gather(0, spread), places, n)
    if keep is not None:
        last = last.masked_fill(~keep.unsqueeze(1), n)
    at = flambeau.full((bags, width), n).scatter_reduce(0, spread, last, "amin")
    if not n:
        return _bag_sums(rows, bag, bags), at - 1
    found, at = at < n, at.clamp_max(n - 1)
    taken = rows.gather(0, at)
    return flambeau.where(found, taken, 0), flambeau.where(found, indices[at], -1)


def _check_bags(weight: Tensor, indices: Tensor, offsets: Tensor, per_sample_weights: Any,
                *rest: Any) -> tuple[Any, ...]:
    for name, tensor, dims, said in (("input", indices, (1, 2), "1D or 2D"),
                                     ("offsets", offsets, (1,), "1D"),
                                     ("weight", weight, (2,), "2D")):
        if tensor._array.ndim not in dims:
            raise RuntimeError(f"{name} has to be a {said} Tensor, but got Tensor of dimension "
                               f"{tensor._array.ndim}")
    indices = indices.reshape(-1)
    check(weight, indices, "embedding_bag")
    check(weight, offsets, "embedding_bag")
    if weight._array.dtype.char not in characters("ef"):
        raise RuntimeError("Expected tensor for argument #1 'weight' to have one of the following "
                           "scalar types: Half, BFloat16, Float, Double; but got "
                           f"{tensor_class_name(weight)} instead (while checking arguments for "
                           "embedding_bag)")
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"#1 'per_sample_weights'; but type {tensor_class_name(weight)} does not equal "
            f"{tensor_class_name(per_sample_weights)} (while checking arguments for embedding_bag)")
    return weight, indices, offsets, per_sample_weights, *rest


def _embedding_bag_kernel(*arrays: Any) -> Any:
    """The kernel where there is no compiled one: the parts, on arrays."""
    given = [wrap(a) if type(a) is np.ndarray else a for a in arrays]
    return [t._array for t in within(grad_mode, False, _embedding_bag_parts, *given)]


_BAGS = ("Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
         "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
         "bool include_last_offset=False")
_FOUR = "-> (Tensor, Tensor, Tensor, Tensor)"



def _places(indices: Tensor, offsets: Tensor, offset2bag: Tensor, bags: int) -> tuple[Tensor, Any]:
    """The bag of each index that is in one, and how many these are, if not all."""
    if offset2bag._array.size or not indices._array.size:
        used = offset2bag._array.size
        return offset2bag, None if used == indices._array.size else used
    places = flambeau.arange(indices._array.size, dtype=offsets.dtype)
    bag = flambeau.searchsorted(offsets[1:bags].contiguous(), places, right=True)
    used = int(offsets._array[-1]) if offsets._array.size > bags else None
    return bag if used is None else bag[:used], used


@op("_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, "
    "Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, "
    "int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
    explicit=True, function=False, method=False, out=False)
def _embedding_bag_backward(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor,
                            bag_size: Tensor, maximum_indices: Tensor, num_weights: int,
                            scale_grad_by_freq: bool, mode: int, sparse: bool,
                            per_sample_weights: Any, padding_idx: int) -> Tensor:
    """The gradient of the table that bags were taken from."""
    bags, width = grad._array.shape
    if mode == 2:
        found = flambeau.where(maximum_indices >= 0, grad, 0)
        table = flambeau.zeros(num_weights, width, dtype=grad.dtype)
        return table.scatter_add(0, maximum_indices.clamp_min(0), found)
    bag, used = _places(indices, offsets, offset2bag, bags)
    if mode == 1:
        grad = grad / bag_size.clamp_min(1).unsqueeze(1).to(grad.dtype)
    rows = grad.index_select(0, bag)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:used].unsqueeze(1)
    return embedding_backward(rows, indices[:used], num_weights, padding_idx, scale_grad_by_freq,
                              sparse)


@op("_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, "
    "Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor", explicit=True,
    function=False, method=False, out=False)
def _embedding_bag_weights_backward(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor,
                                    offset2bag: Tensor, mode: int, padding_idx: int) -> Tensor:
    """The gradient of the weights of the elements of bags."""
    bag, used = _places(indices, offsets, offset2bag, grad._array.shape[0])
    found = (embedding_op(weight, indices[:used]) * grad.index_select(0, bag)).sum(1)
    if padding_idx >= 0:
        found = found.masked_fill(indices[:used] == padding_idx, 0)
    rest = 0 if used is None else indices._array.size - used
    return flambeau.cat([found, found.new_zeros(rest)]) if rest else found


def _embedding_bag_vjp(grad: Any, needs: Any, weight: Tensor, indices: Tensor, offsets: Tensor,
                       per_sample_weights: Any, scale_grad_by_freq: bool, mode: int, sparse: bool,
                       padding_idx: int, result1: Tensor, result2: Tensor, result3: Tensor) -> Any:
    by_weight = None if not needs[0] else _embedding_bag_backward(
        grad[0], indices, offsets, result1, result2, result3, weight._array.shape[0],
        scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx)
    by_factors = None if not needs[3] else _embedding_bag_weights_backward(
        grad[0], weight, indices, offsets, result1, mode, padding_idx)
    return by_weight, None, None, by_factors


_embedding_bag = op(
    f"_embedding_bag({_BAGS}, int padding_idx=-1) {_FOUR}", kernel=_embedding_bag_kernel,
    checked_kernel=checked("embedding_bag"), canonical=_check_bags, parts=_embedding_bag_parts,
    vjp=_embedding_bag_vjp, nondiff="indices offsets", differentiable=(True, False, False, False),
    out=False, method=False)


@op(f"embedding_bag({_BAGS}) {_FOUR}",
    "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, "
    "bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
    f"bool include_last_offset, int? padding_idx) {_FOUR}", out=False, method=False)
def embedding_bag_op(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool,
                     mode: int, sparse: bool, per_sample_weights: Tensor | None,
                     include_last_offset: bool, padding_idx: int | None
                     ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums (mode 0), means (1) or maxima (2) of bags of embeddings, with each index's bag, the
    bags' sizes, and where the maxima were."""
    return _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                          per_sample_weights, include_last_offset,
                          -1 if padding_idx is None else _place_of_padding(padding_idx, weight))


def _place_of_padding(padding_idx: int, weight: Tensor) -> int:
    count = weight._array.shape[0]
    if not -count <= padding_idx < count:
        raise RuntimeError("padding_idx must be within the number of embeddings, "
                           f"-{count} through {count - 1}, but got {padding_idx}")
    return padding_idx % count


_MODES = {"sum": 0, "mean": 1, "max": 2}


def _bag_arguments(input: Tensor, offsets: Any, weights: Any) -> tuple[Tensor, Tensor, Any]:
    """Bags given as rows of a matrix, as a list with offsets."""
    rank = input.dim()
    if rank == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is "
                             "a mini-batch of fixed length sequences. However, found offsets of "
                             f"type {type(offsets)}")
        n, length = input._array.shape
        offsets = flambeau.arange(0, n * length, length, dtype=input.dtype) if length else \
            flambeau.zeros(n, dtype=input.dtype)
        return input.reshape(-1), offsets, None if weights is None else weights.reshape(-1)
    if rank != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {rank}")
    if not isinstance(offsets, Tensor):
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets._array.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, weights


@python_function(namespace=NETWORK)
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None,
                  max_norm: float | None = None, norm_type: float = 2,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of the rows of `weight` over bags: rows of `input` (n, l), or stretches
    of `input` (l) that start at `offsets`.

    >>> import flambeau
    >>> flambeau.nn.functional.embedding_bag(flambeau.tensor([[0, 1]]), flambeau.eye(2), mode="sum")
    tensor([[1., 1.]])
    """
    if weight.dtype == flambeau.int64 and input.is_floating_point():
        import warnings
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. "
                      "Usage `embedding_bag(weight, input, ...)` is deprecated, "
                      "and should now be `embedding_bag(input, weight, ...)`.", stacklevel=2)
        input, weight = weight, input
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is "
                         f"not None, then it must have the same shape as the input ({input.shape})")
    if weight._array.ndim != 2:
        raise ValueError("weight has to be a 2D Tensor, but got Tensor of dimension "
                         f"{weight._array.ndim}")
    input, offsets, per_sample_weights = _bag_arguments(input, offsets, per_sample_weights)
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub.")
    if max_norm is not None:
        with no_grad():
            embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return embedding_bag_op(weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse,
                            per_sample_weights, include_last_offset, padding_idx)[0]
