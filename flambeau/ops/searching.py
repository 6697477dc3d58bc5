"""Finding and counting: nonzero, unique, searchsorted, isin, histograms."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau.core.dtypes import FLOATING, from_numpy_dtype
from flambeau.core.op import composite, primitive, public
from flambeau.core.promotion import promote, result_type, type_name
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor, basis, tensor_types, wrap
from flambeau.kernels import indexing, sorting
from flambeau.kernels.reference import as_dtype
from flambeau.kernels.refused import refuse
from flambeau.ops.pointwise import as_number, together
from flambeau.ops.refusals import refusing
from flambeau.ops.slices import take

# ---- nonzero ------------------------------------------------------------------------------------


@primitive(lambda self: indexing.nonzero(self), unsized=True, method=False, namespace=None)
def nonzero_rows(input: Tensor) -> Any:
    return (input,)


@composite(method=True)
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """The positions of the elements that are not zero: one a row, or a tensor a dimension.

    >>> import flambeau
    >>> flambeau.tensor([0, 3, 5]).nonzero()
    tensor([[1],
            [2]])
    """
    if as_tuple:
        if out is not None:
            raise TypeError("nonzero() got an unexpected keyword argument 'out': as_tuple=True")
        rows = nonzero_rows(input if input._array.ndim else basis.reshape(input, (1,)))
        return basis.unbind(rows, 1)
    result = nonzero_rows(input)
    return result if out is None else basis.into(out, nonzero.op, result)


@composite(method=True)
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero, one a row."""
    return nonzero_rows(input)


def _nonzero_static(self: np.ndarray, size: int, fill_value: int) -> np.ndarray:
    found = indexing.nonzero(self)[:size]
    rest = np.full((size - len(found), found.shape[1]), fill_value, np.int64)
    return np.concatenate([found, rest])


@primitive(_nonzero_static)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Any:
    """The first `size` positions of elements that are not zero, filled up with `fill_value`."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return input, size, fill_value


@composite
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of that shape, of positions in the flattened one.

    >>> import flambeau
    >>> flambeau.unravel_index(flambeau.tensor([5, 7]), (3, 4))
    (tensor([1, 1]), tensor([1, 3]))
    """
    if indices._array.dtype.kind not in "ui":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError("expected 'shape' sequence to only contain ints, but got "
                            f"{type(n)}")
    if sizes and min(sizes) < 0:
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [prod(sizes[i + 1:]) for i in range(len(sizes))]
    steps, sizes = (wrap(np.array(v, np.int64)) for v in (steps, sizes))
    return basis.unbind((basis.reshape(indices, (*indices._array.shape, 1)) // steps) % sizes, -1)


basis.nonzero = nonzero

# ---- distinct elements --------------------------------------------------------------------------


def _distinct(self: np.ndarray, dim: int | None, sort: bool) -> Any:
    found = sorting.unique(self, True, True) if dim is None else sorting.unique_rows(
        self, dim, True, True)
    return [np.asarray(f) for f in found]


def _consecutive(self: np.ndarray, dim: int | None, sort: bool) -> Any:
    return [np.asarray(f) for f in sorting.unique_consecutive(self, dim, True, True)]


def _underived(name: str, kernel: Any, node_name: str) -> Any:
    """The distinct elements, their places and counts, as an op without a derivative: results
    require grad, and their backward raises."""
    def refuse(grad: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    @primitive(kernel, name=f"{name}_parts", node_name=node_name, vjp=refuse, returns=list,
               differentiable=(True, False, False), method=False, namespace=None, unsized=True)
    def parts(input: Tensor, dim: int | None, sort: bool) -> Any:
        return input, dim, sort
    return parts


_by_sorting = _underived("_unique", _distinct, "UniqueBackward0")
_by_counting = _underived("_unique2", _distinct, "Unique2Backward0")
_along_dim = _underived("unique_dim", _distinct, "UniqueDimBackward0")
_runs = _underived("unique_consecutive", _consecutive, "UniqueConsecutiveBackward0")


def _wanted(parts: Any, inverse: bool, counts: bool) -> Any:
    found = [parts[0]]
    if inverse:
        found.append(parts[1])
    if counts:
        found.append(parts[2])
    return found[0] if len(found) == 1 else tuple(found)


@composite(method=True)
@refusing("cW8", "unique")
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False, dim: int | None = None) -> Any:
    """The distinct elements in ascending order (or distinct slices along `dim`); on request the
    place of each element among them, and how often each occurs.

    >>> import flambeau
    >>> flambeau.unique(flambeau.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    parts = _by_counting(input, None, sorted) if dim is None else _along_dim(
        input, wrap_dim(dim, input._array.ndim), sorted)
    return _wanted(parts, return_inverse, return_counts)


@composite(method=True)
@refusing("cW8", "unique")
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The elements (or slices along `dim`) without those that equal the one before."""
    parts = _runs(input, None if dim is None else wrap_dim(dim, input._array.ndim), True)
    return _wanted(parts, return_inverse, return_counts)


def _always_three(parts: Any, inverse: bool, counts: bool) -> tuple[Tensor, ...]:
    """What was not asked for is empty."""
    none = wrap(np.empty(0, np.int64))
    return parts[0], parts[1] if inverse else none, parts[2] if counts else none


def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> Any:
    """`unique` as it was before there were counts: always a pair."""
    return _always_three(_by_sorting(input, None, sorted), return_inverse, False)[:2]


def _unique2(input: Tensor, sorted: bool = True, return_inverse: bool = False,
             return_counts: bool = False) -> Any:
    """`unique` of all elements, always with three results."""
    return _always_three(_by_counting(input, None, sorted), return_inverse, return_counts)


def unique_dim(input: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False,
               return_counts: bool = False) -> Any:
    """`unique` of slices, always with three results."""
    return tuple(_along_dim(input, wrap_dim(dim, input._array.ndim), sorted))


public["torch"].update(_unique=_unique, _unique2=_unique2)


# ---- searching in what is sorted ----------------------------------------------------------------


def _search(sorted_sequence: np.ndarray, values: np.ndarray, sorter: np.ndarray | None, right: bool,
            int32: bool) -> np.ndarray:
    side = "right" if right else "left"
    target = np.int32 if int32 else np.int64
    sequence, values = promote(sorted_sequence, values)
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    if sequence.dtype.kind in "fV" and sequence.size and (
            np.isnan(sequence[..., -1]).any() or np.isnan(values).any()):
        search = _bisect                        # NumPy takes NaN for the greatest number
    else:
        search = np.searchsorted
    if sequence.ndim == 1:
        return np.asarray(search(sequence, values, side)).astype(target)
    result = np.empty(values.shape, target)
    for row in np.ndindex(*sequence.shape[:-1]):
        result[row] = search(sequence[row], values[row], side)
    return result


def _bisect(sequence: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """Bisection by comparisons as IEEE 754 has them: none with NaN holds."""
    stops = np.greater if side == "right" else np.greater_equal
    low, high = np.zeros(values.shape, np.int64), np.full(values.shape, len(sequence))
    while (open_ := low < high).any():
        middle = (low + high) // 2
        stop = stops(sequence[np.minimum(middle, len(sequence) - 1)], values)
        low, high = np.where(open_ & ~stop, middle + 1, low), np.where(open_ & stop, middle, high)
    return low


@primitive(_search, tensors=("sorted_sequence", "values", "sorter"), method=False, namespace=None)
def _search_sorted(sorted_sequence: Tensor, values: Tensor, sorter: Tensor | None, right: bool,
                   int32: bool) -> Any:
    return sorted_sequence, values, sorter, right, int32


@composite
@refusing("UcW8", "searchsorted_out_cpu")
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False,
                 right: bool = False, side: str | None = None, sorter: Tensor | None = None,
                 out: Any = None) -> Tensor:
    """The positions at which the values of `input` would keep the last dimension of
    `sorted_sequence` sorted: before equal elements, or after them if `right`.

    >>> import flambeau
    >>> flambeau.searchsorted(flambeau.tensor([1, 3, 5]), flambeau.tensor([3, 6]))
    tensor([1, 3])
    """
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError("torch.searchsorted(): side can only be 'left' or 'right' but got "
                               f"{side}")
        if right and side == "left":
            raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, "
                               "got side of left while right was True")
        right = side == "right"
    values = _as_values(input, sorted_sequence)
    sorted_sequence, values = together(sorted_sequence, values)
    shape, wanted = sorted_sequence._array.shape, values._array.shape
    if not shape:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension "
                           "but got 0 dimension")
    if len(shape) > 1 and shape[:-1] != wanted[:-1]:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should be 1 dimension or the "
                           "first N-1 dimensions of boundaries tensor and input value tensor must "
                           f"match, but we got boundaries tensor {list(shape)} and input value "
                           f"tensor {list(wanted)}")
    if sorter is not None and sorter._array.shape != shape:
        raise RuntimeError("torch.searchsorted(): boundary and sorter must have the same size, but "
                           f"got boundary tensor {list(shape)}and got sorter tensor "
                           f"{list(sorter._array.shape)}")
    result = _search_sorted(sorted_sequence, values, sorter, right, out_int32)
    return result if out is None else basis.into(out, searchsorted.op, result)


def _as_values(input: Any, like: Tensor) -> Tensor:
    if isinstance(input, Tensor):
        return input
    number = as_number(input, "searchsorted", "input", 2)
    return wrap(as_dtype(number, result_type([like._array], [number]).numpy))


@composite
@refusing("UcW8", "searchsorted_out_cpu")
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False,
              out: Any = None) -> Tensor:
    """Which of the buckets between the sorted `boundaries` each value falls into."""
    if boundaries._array.ndim != 1:
        raise RuntimeError("boundaries tensor must be 1 dimension, but got dim("
                           f"{boundaries._array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@composite
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False,
         invert: bool = False, out: Any = None) -> Tensor:
    """Is each of `elements` among `test_elements`?

    >>> import flambeau
    >>> flambeau.isin(flambeau.tensor([1, 2, 3]), flambeau.tensor([2, 3]))
    tensor([False,  True,  True])
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin() received an invalid combination of arguments: one at least must be "
                        "a Tensor")
    for value in (elements, test_elements):
        kind = value._array.dtype if isinstance(value, Tensor) else np.asarray(value).dtype
        if kind.kind in "bc":
            raise RuntimeError("Unsupported input type encountered for isin(): "
                               f"{type_name(from_numpy_dtype(kind))}")
    elements = elements if isinstance(elements, Tensor) else _as_values(elements, test_elements)
    refuse(elements._array, "UW8", "isin_default_cpu")
    if not isinstance(test_elements, Tensor):
        found = elements == test_elements
    else:
        flat = basis.reshape(test_elements, (-1,))
        found = (basis.reshape(elements, (*elements._array.shape, 1)) == flat).any(-1) \
            if flat._array.size * elements._array.size < 10_000 \
            or type(elements) not in tensor_types else _is_member(elements, flat)
    result = ~found if invert else found
    return result if out is None else basis.into(out, isin.op, result)


@primitive(lambda self, test: np.isin(*promote(self, test)), tensors=("self", "test"), method=False,
           namespace=None, params=())
def _is_member(elements: Tensor, test: Tensor) -> Any:
    return elements, test


# ---- counting -----------------------------------------------------------------------------------


def _bincount(self: np.ndarray, weights: np.ndarray | None, minlength: int) -> np.ndarray:
    if weights is None:
        return np.bincount(self, minlength=minlength)
    counted = np.bincount(self, weights=weights.astype(np.float64), minlength=minlength)
    return counted.astype(np.float32 if weights.dtype == np.float32 else np.float64)


@primitive(_bincount, tensors=("self", "weights"), unsized=True,
           d_weights=lambda grad, self: take(grad, basis.cast(self, np.dtype(np.int64))))
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Any:
    """How often each of 0, 1, 2 … occurs; with `weights`, the sum of those of its occurrences.

    >>> import flambeau
    >>> flambeau.bincount(flambeau.tensor([1, 1, 2]))
    tensor([0, 2, 1])
    """
    x = input._array
    if x.dtype.kind not in "ui":
        raise NotImplementedError("\"bincount_cpu\" not implemented for "
                                  f"'{type_name(input.dtype)}'")
    if x.ndim != 1 or (x.size and x.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights._array.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    return input, weights, minlength


__all__ = ["bincount", "isin", "nonzero", "searchsorted", "unique"]


# ---- checksums ----------------------------------------------------------------------------------

@primitive(lambda self, dim, keepdim: np.bitwise_xor.reduce(
    self.astype(np.float64 if self.dtype in FLOATING else np.int64).view(np.uint64), dim,
    keepdims=keepdim), name="xor_of_bits", namespace=None, method=False)
def _xor_of_bits(input: Tensor, dim: tuple[int, ...], keepdim: bool) -> Any:
    return input, dim, keepdim


@composite(method=True)
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0,
                out: Tensor | None = None) -> Tensor:
    """The exclusive or of all elements' bits (as float64 or int64), or along `dim`; uint64.

    >>> import flambeau
    >>> flambeau.hash_tensor(flambeau.tensor([1, 2, 7]))
    tensor(4, dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input._array.dtype.kind in "cW":
        raise NotImplementedError('"xor_sum_cpu" not implemented for '
                                  f"'{type_name(input.dtype)}'")
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    if not input.numel() and not given:
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() "
                           "== 0. Specify the reduction dim with the 'dim' argument.")
    dims = tuple([wrap_dim(d, input.ndim) for d in given])
    for d in dims:
        if 0 in input.shape[d:d + 1]:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    dims = (dims or tuple(range(input.ndim))) if input.ndim else ()
    result = _xor_of_bits(input, dims, keepdim)
    return result if out is None else basis.into(out, hash_tensor.op, result)
