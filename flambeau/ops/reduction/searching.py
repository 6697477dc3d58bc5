"""Finding and counting: nonzero, unique, searchsorted, isin, histograms."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core.dtypes import FLOATING, from_numpy_dtype
from flambeau.core.promotion import promote, result_type, type_name
from flambeau.core.shapes import wrap_dim, wrap_existing_dim
from flambeau.core.tensor import Tensor, plain_types, tensor_types, wrap
from flambeau.dispatch.declaration import op
from flambeau.dispatch.members import member
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.dtypes import as_dtype
from flambeau.kernels.moving import indexing
from flambeau.kernels.reduction import searching as kernels
from flambeau.kernels.reduction import sorting
from flambeau.kernels.refused import no_kernel, refuse
from flambeau.ops.indexing.counted_slices import (
    bincount_batched,
    distinct_batched,
    distinct_slices_batched,
    nonzero_batched,
    nonzero_static_batched,
)
from flambeau.ops.indexing.masked import take
from flambeau.ops.out_types import OUT_DEVICE, OUT_TYPE
from flambeau.ops.pointwise.arithmetic import as_number
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_as_rows, batch_first, movedim
from flambeau.ops.view.splitting import unbind
from flambeau.schema import errors

# ---- nonzero ------------------------------------------------------------------------------------


nonzero_rows = op(
    "nonzero(Tensor self) -> Tensor", kernel=indexing.nonzero, unsized=True, method=False,
    function=False, batch=nonzero_batched,
    refuses=("nonzero_count_cpu", "U8"),
    out_type="nonzero: Expected out tensor to have scalar type {found} but got scalar type{out}",
    doc="The positions of the elements that are not zero, one a row.")


@python_function(of=nonzero_rows, module="torch")
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """The positions of the elements that are not zero: one a row, or a tensor a dimension.

    >>> import flambeau
    >>> flambeau.tensor([0, 3, 5]).nonzero()
    tensor([[1],
            [2]])
    """
    if not isinstance(as_tuple, bool):
        raise TypeError("nonzero(): argument 'as_tuple' must be bool, not "
                        f"{errors.type_name(as_tuple)}")
    if not as_tuple:
        return nonzero_rows(input) if out is None else nonzero_rows(input, out=out)
    if out is not None:
        if not isinstance(out, Tensor):
            raise TypeError("nonzero(): argument 'out' must be Tensor, not "
                            f"{errors.type_name(out)}")
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    rows = nonzero_rows(input if input._array.ndim else reshape(input, (1,)))
    return unbind(rows, 1)


member("nonzero(Tensor self) -> Tensor", "nonzero.tuple(Tensor self, *, bool as_tuple) -> Tensor[]",
       function=False, doc=nonzero.__doc__,
       body=lambda self, as_tuple=False: nonzero(self, as_tuple=bool(as_tuple)))

argwhere = op("argwhere(Tensor self) -> Tensor", body=lambda self: nonzero_rows(self), unsized=True,
              out=False, doc="The positions of the elements that are not zero, one a row.")


def _check_size(self: Tensor, size: int, fill_value: int) -> tuple[Any, ...]:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return self, size, fill_value


nonzero_static = op(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    kernel=kernels.nonzero_static, refuses=("nonzero_count_cpu", "U8"),
    canonical=_check_size, batch=nonzero_static_batched,
    doc="The first `size` positions of elements that are not zero, filled up with `fill_value`.")


@python_function
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of that shape, of positions in the flattened one.

    >>> import flambeau
    >>> flambeau.unravel_index(flambeau.tensor([5, 7]), (3, 4))
    (tensor([1, 1]), tensor([1, 3]))
    """
    if indices.is_complex() or indices._array.dtype.kind not in "ui":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if sizes and min(sizes) < 0:
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [prod(sizes[i + 1:]) for i in range(len(sizes))]
    wraps, extents = (wrap(np.array(v, np.int64)) for v in (steps, sizes))
    if indices.is_meta:
        wraps, extents = wraps.to("meta"), extents.to("meta")
    return unbind((reshape(indices, (*indices._array.shape, 1)) // wraps) % extents, -1)



# ---- equality -----------------------------------------------------------------------------------


def _equal(self: Tensor, other: Tensor) -> bool:
    x, y = self._array, other._array
    if x.dtype is y.dtype and x.dtype.char in "?Bbhilqfd" and type(self) in plain_types \
            and type(other) in plain_types:
        return kernels.same(x, y)
    if x.shape != y.shape:
        return False
    if x is y:
        refuse(x, "W8", "equal_notnan_cpu")
    refuse(x, "W", "equal_cpu")
    return bool((self == other).all().item())


equal = op("equal(Tensor self, Tensor other) -> bool", body=_equal, out=False, explicit=True,
           doc="Do two tensors have the same shape and equal elements?")

# ---- distinct elements --------------------------------------------------------------------------


def _declare_without_derivative(name: str) -> Any:
    """The distinct elements have a node, whose backward raises."""
    def refuse(grad: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")
    return refuse


def _drop_unrequested(found: Any, inverse: bool, counts: bool) -> list[np.ndarray]:
    """Three results, of which those that nobody has asked for are empty."""
    none = np.empty(0, np.int64)
    return [np.asarray(found[0]), np.asarray(found[1]) if inverse else none,
            np.asarray(found[2]) if counts else none]


def _unique_kernel(self: np.ndarray, sorted: bool, return_inverse: bool, return_counts: bool
                   ) -> Any:
    return kernels.distinct(self, return_inverse, return_counts)


def _unique_batched(size: int, dims: Any, self: Tensor, sorted: bool, inverse: bool,
                    counts: bool = False) -> Any:
    rows = batch_first(self, dims[0], size)
    found = distinct_batched(size, batch_as_rows(self, dims[0], size), rows._array.shape[1:], False,
                             inverse, counts)
    return found, [0, 0, 0]


def _slices_along(self: np.ndarray, dim: int) -> int:
    """The dimension, if there are slices along it that can be compared."""
    dim, empty = wrap_existing_dim(dim, self.ndim), self.shape.count(0)
    if not self.shape[dim] and empty > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be "
                           "applied ")
    if self.shape[dim] and empty:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique "
                           "cannot be applied")
    return dim


def _unique_dim_batched(size: int, dims: Any, self: Tensor, dim: int, *asked: bool) -> Any:
    return distinct_slices_batched(size, dims, self, wrap_dim(dim, self._array.ndim - 1), False)


def _unique_consecutive_batched(size: int, dims: Any, self: Tensor, inverse: bool, counts: bool,
                                dim: int | None) -> Any:
    if dim is not None:
        found, where = distinct_slices_batched(
            size, dims, self, wrap_dim(dim, self._array.ndim - 1), True)
        none = found[1].new_empty((size, 0))
        return [found[0], found[1] if inverse else none, found[2] if counts else none], where
    rows = batch_first(self, dims[0], size)
    found = distinct_batched(size, batch_as_rows(self, dims[0], size), rows._array.shape[1:], True,
                             inverse, counts)
    return found, [0, 0, 0]


_PARTS = {"method": False, "unsized": True, "out": False, "refuses": ("unique", "cW8")}
_unique = op(
    "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
    kernel=lambda self, sorted, inverse: kernels.distinct(self, inverse, False)[:2],
    node="UniqueBackward0", vjp=_declare_without_derivative("_unique"),
    differentiable=(True, False),
    batch=lambda *given: tuple([each[:2] for each in _unique_batched(*given)]),
    doc="`unique` as it was before there were counts: always a pair.", **_PARTS)
_unique2 = op(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, "
    "bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    kernel=_unique_kernel, node="Unique2Backward0", vjp=_declare_without_derivative("_unique2"),
    batch=_unique_batched,
    differentiable=(True, False, False),
    doc="`unique` of all elements, always with three results.", **_PARTS)
unique_dim = op(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, "
    "bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    kernel=lambda self, dim, sorted, inverse, counts: [
        np.asarray(f) for f in sorting.unique_rows(self, _slices_along(self, dim), True, True)],
    vjp=_declare_without_derivative("unique_dim"), differentiable=(True, False, False),
    batch=_unique_dim_batched, doc="`unique` of slices, always with three results.",
    **{**_PARTS, "refuses": ("unique_dim", "cW8")})


def _unique_consecutive_kernel(self: np.ndarray, return_inverse: bool, return_counts: bool,
                               dim: int | None) -> Any:
    if dim is None:
        return kernels.distinct_runs(self, return_inverse, return_counts)
    return _drop_unrequested(sorting.unique_consecutive(self, _slices_along(self, dim), True, True),
                             return_inverse, return_counts)


_unique_consecutive = op(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
    "int? dim=None) -> (Tensor, Tensor, Tensor)",
    kernel=_unique_consecutive_kernel, vjp=_declare_without_derivative("unique_consecutive"),
    batch=_unique_consecutive_batched, differentiable=(True, False, False), function=False,
    doc="Runs of equal elements, always with three results.",
    **{**_PARTS, "refuses": (lambda self, inverse, counts, dim: "unique" if dim is None or
                             self.ndim == 1 else "unique_dim", "cW8")})


def _select_requested(parts: Any, inverse: bool, counts: bool) -> Any:
    if not (inverse or counts):
        return parts[0]
    return (parts[0], *parts[1:2] * inverse, *parts[2:] * counts)


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False, dim: int | None = None) -> Any:
    """The distinct elements in ascending order (or distinct slices along `dim`); on request the
    place of each element among them, and how often each occurs.

    >>> import flambeau
    >>> flambeau.unique(flambeau.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    asked: Any = {"return_inverse": return_inverse, "return_counts": return_counts}
    parts = _unique2(input, sorted=sorted, **asked) if dim is None else unique_dim(
        input, dim, sorted=sorted, **asked)
    return _select_requested(parts, return_inverse, return_counts)


unique = python_function(unique, private="_return_output", switched=True)


@python_function(of=_unique_consecutive, private="_consecutive_return_output", switched=True)
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The elements (or slices along `dim`) without those that equal the one before."""
    parts = _unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts,
                                dim=dim)
    return _select_requested(parts, return_inverse, return_counts)


# ---- searching in what is sorted ----------------------------------------------------------------


_SEARCH = "*, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None"


def _refuse_out_type(read: Any, out: Any, found: Any) -> str:
    return ("torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or "
            "Long(int64) depending on whether out_int32 flag is True, but we got output tensor's "
            f"dtype {{out}} and out_int32 flag is {found.itemsize == 4}")


def _search_name(first: np.ndarray, second: np.ndarray, *_: Any) -> str:
    """Booleans are searched among other numbers only."""
    alone = first.dtype.char != "?" or second.dtype == first.dtype
    return "searchsorted_out_cpu" if alone else ""


def _searchsorted_kernel(sorted_sequence: np.ndarray, self: np.ndarray, sorter: Any,
                         *rest: Any) -> Any:
    if sorted_sequence.dtype != self.dtype:
        sorted_sequence, self = promote(sorted_sequence, self)
    if sorter is not None and sorter.size and sorter.shape == sorted_sequence.shape and not (
            sorter.min() >= 0 and sorter.max() < sorter.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    _warn_of_copies(sorted_sequence, self, sorter)
    return kernels.searchsorted(sorted_sequence, self, sorter, *rest)


def _warn_of_copies(boundary: np.ndarray, values: np.ndarray, sorter: np.ndarray | None) -> None:
    for name, array in (("boundary", boundary), ("input value", values), ("sorter", sorter)):
        if array is not None and not array.flags.c_contiguous:
            warn_once(f"torch.searchsorted(): {name} tensor is non-contiguous, this will lower the "
                      "performance due to extra data copy when converting non-contiguous tensor to "
                      f"contiguous, please use contiguous {name} tensor if possible. This message "
                      "will only appear once per program.")


def _searchsorted_batched(size: int, dims: Any, sorted_sequence: Tensor, self: Tensor, sorter: Any,
                          *rest: Any) -> Any:
    """Values as rows, for a sequence in each slice."""
    if dims[0] is None and dims[2] is None and sorted_sequence._array.ndim == 1:
        return searchsorted.op.call(sorted_sequence, movedim(self, dims[1], 0), sorter,
                                          *rest), 0
    rows = [t if t is None else batch_first(t, d, size) for t, d in zip(
        (sorted_sequence, self, sorter), dims)]
    shape = rows[1]._array.shape
    if rows[0]._array.ndim == 2:
        rows[1] = reshape(rows[1], (size, prod(shape[1:])))
    found = searchsorted.op.call(*rows, *rest)
    return reshape(found, shape), 0


def _bucketize_batched(size: int, dims: Any, self: Tensor, boundaries: Tensor, int32: bool,
                       right: bool) -> Any:
    return _searchsorted_batched(size, (dims[1], dims[0], None), boundaries, self, None, int32,
                                 right, None)


searchsorted = op(
    f"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, {_SEARCH}) -> Tensor",
    kernel=_searchsorted_kernel, method=False, refuses=(_search_name, "bUcW8"),
    batch=_searchsorted_batched,
    out_type=_refuse_out_type,
    doc="""The positions at which the values of `input` would keep the last dimension of
    `sorted_sequence` sorted: before equal elements, or after them if `right`.

    >>> import flambeau
    >>> flambeau.searchsorted(flambeau.tensor([1, 3, 5]), flambeau.tensor([3, 6]))
    tensor([1, 3])
    """)
op(f"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, {_SEARCH}) -> Tensor",
   overload_of=searchsorted, body=lambda sequence, self, int32, right, side, sorter: searchsorted(
       sequence, _as_values(self, sequence), out_int32=int32, right=right, side=side,
       sorter=sorter), method=False, out_type=_refuse_out_type)


def _as_values(input: Any, like: Tensor) -> Tensor:
    if isinstance(input, Tensor):
        return input
    number = as_number(input, "searchsorted", "input", 2)
    return wrap(as_dtype(number, result_type([like._array], [number]).numpy))


def _bucketize_kernel(self: np.ndarray, boundaries: np.ndarray, out_int32: bool, right: bool
                      ) -> np.ndarray:
    if boundaries.dtype != self.dtype:
        self, boundaries = promote(self, boundaries)
    _warn_of_copies(boundaries, self, None)
    return kernels.bucketize(self, boundaries, out_int32, right)


bucketize = op(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
    "-> Tensor",
    kernel=_bucketize_kernel, method=False, refuses=(_search_name, "bUcW8"),
    batch=_bucketize_batched,
    out_type=_refuse_out_type,
    doc="Which of the buckets between the sorted `boundaries` each value falls into.")
op("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
   "-> Tensor",
   overload_of=bucketize, method=False, out=False,
   body=lambda self, boundaries, int32, right: bucketize(
       _as_values(self, boundaries), boundaries, out_int32=int32, right=right))


def _isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Tensor:
    for value in (elements, test_elements):
        kind = value._array.dtype if isinstance(value, Tensor) else np.asarray(value).dtype
        if kind.kind in "bc":
            raise RuntimeError("Unsupported input type encountered for isin(): "
                               f"{type_name(from_numpy_dtype(kind))}")
    elements = elements if isinstance(elements, Tensor) else _as_values(elements, test_elements)
    if not isinstance(test_elements, Tensor):
        found = elements == test_elements
    else:
        # PyTorch compares with few values one by one, and sorts many
        few = test_elements._array.size < 10 * elements._array.size ** 0.145
        refuse(elements._array, "UW8" if few else "W8", "isin_default_cpu" if few else "unique")
        flat = reshape(test_elements, (-1,))
        found = (reshape(elements, (*elements._array.shape, 1)) == flat).any(-1) \
            if flat._array.size * elements._array.size < 10_000 \
            or type(elements) not in tensor_types else _is_member(elements, flat)
    return ~found if invert else found


_FLAGS = "*, bool assume_unique=False, bool invert=False) -> Tensor"
isin = op(
    f"isin.Tensor_Tensor(Tensor elements, Tensor test_elements, {_FLAGS}", body=_isin,
    method=False, out_type=OUT_TYPE, doc="""Is each of `elements` among `test_elements`?

    >>> import flambeau
    >>> flambeau.isin(flambeau.tensor([1, 2, 3]), flambeau.tensor([2, 3]))
    tensor([False,  True,  True])
    """)
op(f"isin.Tensor_Scalar(Tensor elements, Scalar test_element, {_FLAGS}", overload_of=isin,
                        body=_isin,
   method=False, out_type=OUT_TYPE)
op(f"isin.Scalar_Tensor(Scalar element, Tensor test_elements, {_FLAGS}", overload_of=isin,
                        body=_isin,
   method=False, out_type=OUT_TYPE)


def _isin_batched(size: int, dims: Any, self: Tensor, test: Tensor) -> Any:
    if dims[1] is None:
        return _is_member.op.call(self, test), dims[0]
    rows, tests = (batch_as_rows(t, d, size) for t, d in zip((self, test), dims))
    found = (rows.unsqueeze(2) == tests.unsqueeze(1)).any(2)
    return reshape(found, batch_first(self, dims[0], size)._array.shape), 0


_is_member = op("_is_member(Tensor self, Tensor test) -> Tensor", out=False, function=False,
                method=False, batch=_isin_batched,
                kernel=lambda self, test: np.isin(*promote(self, test)))

# ---- counting -----------------------------------------------------------------------------------


def _bincount_kernel(self: np.ndarray, weights: np.ndarray | None, minlength: int) -> np.ndarray:
    if self.dtype.kind not in "ui":
        raise no_kernel("bincount_cpu", self.dtype)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.ndim != 1 or (self.size and self.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is None:
        return np.bincount(self, minlength=minlength)
    counted = np.bincount(self, weights=weights.astype(np.float64), minlength=minlength)
    return counted.astype(np.float32 if weights.dtype == np.float32 else np.float64)


bincount = op(
    "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
    kernel=_bincount_kernel, unsized=True, out=False, refuses=("bincount_cpu", "U"),
    batch=bincount_batched,
    d_weights=lambda grad, self: take(grad, cast(self, np.dtype(np.int64))),
    doc="""How often each of 0, 1, 2 … occurs; with `weights`, the sum of those of its occurrences.

    >>> import flambeau
    >>> flambeau.bincount(flambeau.tensor([1, 1, 2]))
    tensor([0, 2, 1])
    """)

# ---- checksums ----------------------------------------------------------------------------------


def _hash_tensor_kernel(self: np.ndarray, dim: tuple[int, ...] | None, keepdim: bool, mode: int
                        ) -> np.ndarray:
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if not self.size and dim is None:
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() "
                           "== 0. Specify the reduction dim with the 'dim' argument.")
    for d in dim or ():
        if not self.shape[d]:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    bits = self.astype(np.float64 if self.dtype in FLOATING else np.int64).view(np.uint64)
    reduce: Any = np.bitwise_xor.reduce
    return reduce(bits, dim if self.ndim else (), keepdims=keepdim)


hash_tensor = op(
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    kernel=_hash_tensor_kernel, dims="dim", refuses=("xor_sum_cpu", "UcW8"), out_device=OUT_DEVICE,
    out_type="Expected result to be of dtype uint64, but got {out}",
    doc="""The exclusive or of all elements' bits (as float64 or int64), or along `dim`; uint64.

    >>> import flambeau
    >>> flambeau.hash_tensor(flambeau.tensor([1, 2, 7]))
    tensor(4, dtype=torch.uint64)
    """)

__all__ = ["bincount", "isin", "nonzero", "searchsorted", "unique"]
