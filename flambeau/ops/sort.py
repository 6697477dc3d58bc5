"""Sorting, and what sorting finds: top-k, k-th value, median, mode."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import return_types
from flambeau.core.op import composite, primitive
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor, basis
from flambeau.kernels import sorting, views
from flambeau.kernels.refused import refuse
from flambeau.ops.extremes import at_index, check_extent, evenly, take_along
from flambeau.ops.refusals import refusing

# ---- sorted whole -------------------------------------------------------------------------------


def _chosen(name: str, kernel: Any, keepdim: bool | None = None, node_name: str = "") -> Any:
    """Declare an op that gives elements and their positions along `dim`; `keepdim`: always kept,
    never, or (None) as its parameter of that name says."""
    def back(grad: Any, result1: Tensor, self_shape: Any, dim: int, keepdim: bool) -> Any:
        return (at_index(grad[0], result1, self_shape, dim, keepdim),)

    def forward(self_t: Tensor, result1: Tensor, dim: int, keepdim: bool) -> Any:
        return take_along(self_t, result1, dim, keepdim), None

    rules: dict[str, Any] = {"vjp": back, "jvp": forward}
    if keepdim is not None:
        rules["vjp"] = lambda grad, result1, self_shape, dim: back(grad, result1, self_shape, dim,
                                                                   True)
        rules["jvp"] = lambda self_t, result1, dim: forward(self_t, result1, dim, True)
    return primitive(kernel, returns=getattr(return_types, name.removesuffix("_dim")), dims="dim",
                     differentiable=(True, False), method=False, namespace=None,
                     name=f"{name}_along", node_name=node_name or f"{name.capitalize()}Backward0",
                     **rules)


def _sort_kernel(self: np.ndarray, dim: int, descending: bool, stable: bool) -> Any:
    if self.flags.c_contiguous:
        return sorting.sort(self, dim, descending, stable)
    order = views.memory_order(self)        # the results lie in memory as the input does
    found = sorting.sort(self.transpose(order), order.index(dim), descending, stable)
    return [views.in_order(f, order) for f in found]


_sort_as_is = _chosen("sort", _sort_kernel, True)(
    lambda input, dim, descending, stable: (input, dim, descending, stable))
_sort_stable = _chosen("sort", _sort_kernel, True, "SortBackward1")(
    lambda input, dim, descending, stable: (input, dim, descending, stable))


@composite(method=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None, *,
         out: Any = None) -> Any:
    """The elements in ascending (or descending) order along `dim`, and their old positions.

    NaN counts as the greatest. Equal elements keep their order.

    >>> import flambeau
    >>> flambeau.tensor([3.0, 1.0, 2.0]).sort()
    torch.return_types.sort(
    values=tensor([1., 2., 3.]),
    indices=tensor([1, 2, 0]))
    """
    if isinstance(dim, bool):               # sort(input, stable, dim, descending)
        stable, dim, descending = dim, descending if not isinstance(descending, bool) else -1, bool(
            stable)
    dim = wrap_dim(dim, input._array.ndim)
    if input._array.dtype.kind in "cW":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    result = (_sort_as_is if stable is None else _sort_stable)(input, dim, descending, True)
    return result if out is None else basis.into(out, sort.op, result, (input,))


@composite(method=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The positions that sort the input along `dim`.

    >>> import flambeau
    >>> flambeau.tensor([3.0, 1.0, 2.0]).argsort()
    tensor([1, 2, 0])
    """
    return sort(input, dim, descending)[1]


@composite(method=True)
def msort(input: Tensor, *, out: Any = None) -> Tensor:
    """The input sorted along its first dimension."""
    result = sort(input, 0)[0]
    return result if out is None else basis.into(out, msort.op, result, (input,))


# ---- some of the elements -----------------------------------------------------------------------


@_chosen("topk", lambda self, k, dim, largest, sorted: sorting.topk(self, k, dim, largest, sorted),
         True)
def _topk(input: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    return input, k, dim, largest, sorted


@composite(method=True)
@refusing("b", "topk does not support bool dtypes on CPU")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *,
         out: Any = None) -> Any:
    """The `k` largest (or smallest) elements along `dim`, and their positions.

    >>> import flambeau
    >>> flambeau.tensor([3.0, 1.0, 2.0]).topk(2)
    torch.return_types.topk(
    values=tensor([3., 2.]),
    indices=tensor([0, 2]))
    """
    if input._array.dtype.kind in "cW":
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    k, dim = int(k), wrap_dim(dim, input._array.ndim)
    if not 0 <= k <= (input._array.shape[dim] if input._array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    result = _topk(input, k, dim, largest, sorted)
    return result if out is None else basis.into(out, topk.op, result, (input,))


@_chosen("kthvalue", lambda self, k, dim, keepdim: sorting.kthvalue(self, k, dim, keepdim))
def _kthvalue(input: Tensor, k: int, dim: int, keepdim: bool) -> Any:
    return input, k, dim, keepdim


@composite(method=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *,
             out: Any = None) -> Any:
    """The k-th smallest element along `dim`, counted from 1, and its position."""
    dim = wrap_dim(dim, input._array.ndim)
    check_extent("kthvalue", input, dim)
    refuse(input._array, "bc", "kthvalue_cpu")
    if not 1 <= k <= (input._array.shape[dim] if input._array.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    result = _kthvalue(input, k, dim, keepdim)
    return result if out is None else basis.into(out, kthvalue.op, result, (input,))


def _median(name: str, kernel: Any, doc: str) -> Any:
    """`median` or `nanmedian`: of everything, and along a dimension."""
    def middle(self: np.ndarray) -> np.ndarray:
        if not self.size:
            return np.full((), np.nan if self.dtype.kind not in "bui" else
                           self.dtype.kind == "b" or np.iinfo(self.dtype).min, self.dtype)
        return np.asarray(kernel(self.reshape(-1), 0)[0])

    def of_rows(size: int, dims: Any, self: Tensor) -> Any:
        if not self._array.size:
            return NotImplemented
        return along(basis.rows(self, dims[0], size), 1, False)[0], 0

    @primitive(middle, name=f"{name}_all", method=False, namespace=None, batch=of_rows,
               node_name=f"{name.capitalize()}Backward0",
               d_self=lambda grad, self, result: evenly(grad, self, result, None, False))
    def of_all(input: Tensor) -> Any:
        return (input,)

    along = _chosen(name, lambda self, dim, keepdim: kernel(self, dim, keepdim), None,
                    f"{name.capitalize()}Backward1")(
        lambda input, dim, keepdim: (input, dim, keepdim))

    def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *,
               out: Any = None) -> Any:
        refuse(input._array, "bcW" if input._array.size else "cW",
               "median_cpu" if dim is None else "median_out")
        if dim is None:
            result = of_all(input)
        else:
            dim = wrap_dim(dim, input._array.ndim)
            check_extent(name, input, dim)
            result = along(input, dim, keepdim)
        return result if out is None else basis.into(out, median.op, result)

    median.__name__, median.__doc__ = name, doc
    median = composite(median, method=True)
    return median


median = _median("median", sorting.median, """The median of all elements, or (values, indices)
    along `dim`; of an even number of elements the lower one. NaN if there is one.

    >>> import flambeau
    >>> flambeau.tensor([3.0, 1.0, 2.0, 4.0]).median()
    tensor(2.)
    """)
nanmedian = _median("nanmedian", sorting.nanmedian, """The median of the elements that are not NaN,
    of all or (values, indices) along `dim`.""")


@_chosen("mode", lambda self, dim, keepdim: sorting.mode(self, dim, keepdim))
def _mode(input: Tensor, dim: int, keepdim: bool) -> Any:
    return input, dim, keepdim


@composite(method=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent element along `dim`, the smallest of equally frequent ones, and a position
    of it."""
    refuse(input._array, "cW", "mode_cpu")
    dim = wrap_dim(dim, input._array.ndim)
    check_extent("mode", input, dim)
    result = _mode(input, dim, keepdim)
    return result if out is None else basis.into(out, mode.op, result, (input,))


__all__ = ["argsort", "kthvalue", "median", "sort", "topk"]
