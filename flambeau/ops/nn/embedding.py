"""Embeddings: rows of a table by number, sums of rows, and one-hot vectors."""
from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

import flambeau
from flambeau.autograd.grad_mode import no_grad
from flambeau.core.op import composite, primitive
from flambeau.core.promotion import is_half
from flambeau.core.tensor import Tensor, basis, plain
from flambeau.kernels import indexing as kernels
from flambeau.kernels.refused import characters
from flambeau.ops.node_names import one_node
from flambeau.ops.pointwise.arithmetic import class_of

NETWORK = "nn.functional"


# ---- embedding -----------------------------------------------------------------------------------


def _embedding_batched(size: int, dims: Any, weight: Tensor, indices: Tensor, padding_idx: int,
                       scale: bool) -> Any:
    if dims[0] is None:
        return _embedding(weight, indices, padding_idx, scale), dims[1]
    w = basis.movedim(weight, dims[0], 0)
    rows = w._array.shape[1]
    i = indices.unsqueeze(0) if dims[1] is None else basis.movedim(indices, dims[1], 0)
    offset = flambeau.arange(size).reshape(size, *(1,) * (i._array.ndim - 1)) * rows
    flat = w.reshape(size * rows, w._array.shape[2])
    found = _embedding(flat, i + offset, -1, scale)
    if padding_idx >= 0:                        # looked up, but not learnt
        found = flambeau.where((i == padding_idx).unsqueeze(-1), found.detach(), found)
    return found, 0


@primitive(lambda weight, indices, padding_idx, scale: kernels.embedding(weight, indices),
           tensors=("weight", "indices"), params=("padding_idx", "scale_grad_by_freq"),
           d_weight=lambda grad, indices, weight_shape, padding_idx, scale_grad_by_freq:
           embedding_dense_backward(grad, indices, weight_shape[0], padding_idx,
                                    scale_grad_by_freq),
           jvp=lambda weight_t, indices: _embedding(weight_t, indices, -1, False),
           batch=_embedding_batched, method=False, namespace=None, node_name="EmbeddingBackward0")
def _embedding(weight: Tensor, indices: Tensor, padding_idx: int, scale: bool) -> Any:
    return weight, indices, padding_idx, scale


def _table_grads_batched(size: int, dims: Any, grad: Tensor, indices: Tensor, count: int,
                         padding_idx: int, scale: bool) -> Any:
    """The tables of all slices as one below the other."""
    grad, indices = (t.expand(size, *t.shape) if d is None else basis.movedim(t, d, 0)
                     for t, d in zip((grad, indices), dims))
    if padding_idx >= 0:
        grad = grad.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    first = flambeau.arange(size).reshape(size, *(1,) * (indices.ndim - 1)) * count
    tables = embedding_dense_backward(grad, indices + first, size * count, -1, scale)
    return tables.reshape(size, count, -1), 0


@primitive(lambda self, indices, count, padding_idx, scale: kernels.embedding_backward(
               self, indices, count, padding_idx, scale),
           tensors=("self", "indices"), kind="linear", batch=_table_grads_batched,
           method=False, namespace=None,
           params=("count", "padding_idx", "scale_grad_by_freq"),
           d_self=lambda grad, indices, padding_idx, scale_grad_by_freq: _rows_of(
               grad, indices, padding_idx, scale_grad_by_freq))
def embedding_dense_backward(input: Tensor, indices: Tensor, count: int, padding_idx: int,
                             scale: bool) -> Any:
    """The gradient of an embedding's table: `input`'s rows added up where `indices` say."""
    return input, indices, count, padding_idx, scale


def _rows_of(grad: Tensor, indices: Tensor, padding_idx: int, scale: bool) -> Tensor:
    rows = _embedding(grad, indices, -1, False)
    if padding_idx >= 0:
        rows = flambeau.where((indices == padding_idx).unsqueeze(-1), 0, rows)
    if scale:
        counts = flambeau.bincount(indices.reshape(-1), minlength=grad._array.shape[0])
        rows = rows / counts[indices].unsqueeze(-1)
    return rows


def _check(weight: Any, indices: Any, name: str) -> None:
    for position, (argument, value) in enumerate((("weight", weight), ("indices", indices))):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}(): argument '{argument}' (position {position + 1}) must be "
                            f"Tensor, not {type(value).__name__}")
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices._array.dtype not in (np.int64, np.int32):
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following "
                           "scalar types: Long, Int; but got "
                           f"{class_of(indices)} "
                           f"instead (while checking arguments for {name})")


@composite(name="embedding")
def embedding_op(weight: Tensor, indices: Tensor, padding_idx: int = -1,
                 scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """`nn.functional.embedding` with its arguments in another order."""
    _check(weight, indices, "embedding")
    if sparse and weight._edge is not None:
        from flambeau.ops.sparse.embedding import sparse_embedding
        return sparse_embedding(weight, indices, padding_idx, scale_grad_by_freq)
    return _embedding(weight, indices, padding_idx, scale_grad_by_freq)


@composite(namespace=NETWORK)
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None,
              max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """The rows of `weight` that `input` names.

    The row `padding_idx` gets no gradient. With `max_norm`, rows that are looked up and longer are
    first shortened, in place. `scale_grad_by_freq` divides a row's gradient by its number of uses.

    >>> import flambeau
    >>> flambeau.nn.functional.embedding(flambeau.tensor([1, 0]), flambeau.eye(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        padding_idx = _wrapped_padding(padding_idx, weight, "Padding_idx")
    if max_norm is not None:
        with no_grad():
            embedding_renorm_(weight, input, max_norm, norm_type)
    if sparse:
        return embedding_op(weight, input, padding_idx, scale_grad_by_freq, sparse)
    _check(weight, input, "embedding")
    return _embedding(weight, input, padding_idx, scale_grad_by_freq)


def _wrapped_padding(padding_idx: int, weight: Tensor, name: str) -> int:
    rows = weight.size(0)
    if padding_idx and not -rows <= padding_idx < rows:
        raise AssertionError(f"{name} must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


@composite
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shorten, in place, the rows of `input` that `indices` name to the norm `max_norm`."""
    rows = indices.reshape(-1)
    values = input.detach()[rows]
    length = values.norm(norm_type, 1, keepdim=True)
    scale = flambeau.where(length > max_norm, max_norm / (length + 1e-7), 1.0)
    with no_grad():                     # a row that is named twice is written twice, the same
        input.index_put_((rows,), values * scale)
    return input


# ---- sums of embeddings --------------------------------------------------------------------------


def _bags(indices: Tensor, offsets: Tensor, include_last: bool) -> tuple[Tensor, int]:
    """For each index its bag, and the number of bags."""
    starts = offsets._array
    n = indices._array.size
    if starts.size == 0:
        if include_last:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        return flambeau.zeros(0, dtype=flambeau.int64), 0
    bags = len(starts) - 1 if include_last else len(starts)
    if type(offsets) in plain:
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


def _embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool,
                   mode: int, sparse: bool, per_sample_weights: Any, include_last: bool,
                   padding_idx: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if type(offsets) in plain and (include_last or not offsets._array.size):
        used = int(offsets._array[-1]) if offsets._array.size else 0
        indices = indices[:used]        # none but those up to the last offset
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[:used]
    bag, bags = _bags(indices, offsets, include_last)
    first, bag_of_all = _first_wrong(indices, weight._array.shape[0]), bag
    if first is not None:
        raise RuntimeError(f"Index {first[0]} of input takes value {first[1]} which is not in the "
                           f"valid range [0, {weight._array.shape[0]})")
    keep = None
    if padding_idx >= 0 and type(indices) in plain:
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
    if type(indices) not in plain or not ((i < 0) | (i >= rows)).any():
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
        return flambeau.zeros(bags, width, dtype=rows.dtype), at - 1
    found, at = at < n, at.clamp_max(n - 1)
    taken = rows.gather(0, at)
    return flambeau.where(found, taken, 0), flambeau.where(found, indices[at], -1)


@composite(name="embedding_bag")
def embedding_bag_op(weight: Tensor, indices: Tensor, offsets: Tensor,
                     scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                     per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                     padding_idx: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums (mode 0), means (1) or maxima (2) of bags of embeddings, with each index's bag, the
    bags' sizes, and where the maxima were."""
    _check(weight, indices, "embedding_bag")
    _check(weight, offsets, "embedding_bag")
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"#1 'per_sample_weights'; but type {class_of(weight)} does not equal "
            f"{class_of(per_sample_weights)} (while checking arguments for embedding_bag)")
    return _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                          per_sample_weights, include_last_offset,
                          -1 if padding_idx is None else padding_idx)


_MODES = {"sum": 0, "mean": 1, "max": 2}


def _bag_arguments(input: Tensor, offsets: Any, weights: Any) -> tuple[Tensor, Tensor, Any]:
    """Bags given as rows of a matrix, as a list with offsets."""
    rank = input._array.ndim
    if rank == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is "
                             "a "
                             "mini-batch of fixed length sequences. However, found offsets of type "
                             f"{type(offsets)}")
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


@composite(namespace=NETWORK)
@one_node(inputs="weight per_sample_weights")
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
    if weight._array.dtype == np.int64 and input.is_floating_point():
        import warnings
        warnings.warn("Argument order of nn.functional.embedding_bag was changed: "
                      "embedding_bag(weight, input, ...) is deprecated, it should be "
                      "embedding_bag(input, weight, ...)", stacklevel=2)
        input, weight = weight, input
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is "
                         "not "
                         "None, then it must have the same shape as the input "
                         f"({input.shape})")
    input, offsets, per_sample_weights = _bag_arguments(input, offsets, per_sample_weights)
    if weight._array.dtype.char not in characters("ef"):
        raise RuntimeError("Expected tensor for argument #1 'weight' to have one of the following "
                           "scalar types: Half, BFloat16, Float, Double; but got "
                           f"{class_of(weight)} instead (while checking arguments for "
                           "embedding_bag)")
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
            embedding_renorm_(weight, input, max_norm, norm_type)
    padding_idx = -1 if padding_idx is None else _wrapped_padding(padding_idx, weight,
                                                                  "padding_idx")
    return embedding_bag_op(weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse,
                            per_sample_weights, include_last_offset, padding_idx)[0]


# ---- one-hot -------------------------------------------------------------------------------------


@composite(namespace=NETWORK)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class, 0 elsewhere, along a new last dimension.

    >>> import flambeau
    >>> flambeau.nn.functional.one_hot(flambeau.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    t = tensor._array
    if t.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not t.size:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return flambeau.zeros(*t.shape, num_classes, dtype=flambeau.int64)
    if type(tensor) is Tensor:
        if t.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = int(t.max()) + 1
        elif t.max() >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    elif num_classes == -1:
        raise RuntimeError("one_hot: num_classes must be given where the classes have no values.")
    return (tensor.contiguous().unsqueeze(-1) == flambeau.arange(num_classes)).long()


__all__ = ["embedding", "embedding_bag", "one_hot"]
