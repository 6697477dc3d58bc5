"""Reductions: sums, means, and their kin."""
from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING, as_numpy_dtype
from flambeau.core.op import composite, linear, public
from flambeau.core.promotion import convert
from flambeau.core.shapes import wrap_dims
from flambeau.core.tensor import Tensor, basis


def reduced_dims(dim: Any, ndim: int) -> tuple[int, ...] | None:
    """A `dim=` argument of a reduction: None means all, and so does an empty tuple."""
    if dim is None:
        return None
    dims = wrap_dims(dim, ndim)
    return dims if dims and ndim else None


def restore(grad: Tensor, shape: tuple[int, ...], dim: tuple[int, ...] | None,
            keepdim: bool) -> Tensor:
    """A reduced tensor in the shape that broadcasts against what was reduced."""
    if keepdim or not shape:
        return grad
    dims = range(len(shape)) if dim is None else dim
    return basis.reshape(grad, tuple([1 if i in dims else n for i, n in enumerate(shape)]))


def _sum(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    return kernels.sum(self, dim, keepdim, dtype)


def sum_type(input: Tensor, dtype: Any) -> Any:
    """Sums of booleans and integers are int64."""
    if dtype is not None:
        return as_numpy_dtype(dtype)
    own = input._array.dtype
    return None if own in FLOATING else dtypes.int64.numpy


@linear(_sum, node_name="SumBackward0", dims="dim", method=False, namespace=None,
        d_self=lambda grad, self_shape, dim, keepdim: basis.expand(
            restore(grad, self_shape, dim, keepdim), self_shape))
def _sum_all(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return input, dim, keepdim, dtype


@linear(_sum, node_name="SumBackward1", dims="dim", method=False, namespace=None,
        d_self=lambda grad, self_shape, dim, keepdim: basis.expand(
            restore(grad, self_shape, dim, keepdim), self_shape))
def _sum_dims(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return input, dim, keepdim, dtype


@composite(method=True)
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
        axis: Any = None, keepdims: bool = False, out: Any = None) -> Tensor:
    """The sum of all elements, or along `dim` (one or several). Integers are summed as int64.

    >>> import flambeau
    >>> flambeau.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """
    if axis is not None:
        dim = axis
    if dim is None:
        result = _sum_all(input, None, keepdim or keepdims, sum_type(input, dtype))
    else:
        result = _sum_dims(input, reduced_dims(dim, input._array.ndim), keepdim or keepdims,
                           sum_type(input, dtype))
    return result if out is None else basis.into(out, sum.op, result)


def _mean(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    return kernels.mean(self if dtype is None else convert(self, dtype), dim, keepdim)


def count(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> int:
    """How many elements a reduction over `dim` combines into one."""
    return product(shape) if dim is None else product([shape[d] for d in dim])


@linear(_mean, node_name="MeanBackward0", dims="dim", method=False, namespace=None,
        d_self=lambda grad, self_shape, dim, keepdim: basis.expand(
            restore(grad, self_shape, dim, keepdim), self_shape) / count(self_shape, dim))
def _mean_all(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return input, dim, keepdim, dtype


@linear(_mean, node_name="MeanBackward1", dims="dim", method=False, namespace=None,
        d_self=lambda grad, self_shape, dim, keepdim: basis.expand(
            restore(grad, self_shape, dim, keepdim), self_shape) / count(self_shape, dim))
def _mean_dims(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return input, dim, keepdim, dtype


@composite(method=True)
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
         axis: Any = None, keepdims: bool = False, out: Any = None) -> Tensor:
    """The mean of all elements, or along `dim` (one or several).

    >>> import flambeau
    >>> flambeau.tensor([1.0, 3.0]).mean()
    tensor(2.)
    """
    if axis is not None:
        dim = axis
    if dtype is None and input._array.dtype not in FLOATING:
        name = str(input.dtype).split(".")[1].capitalize().replace("Int64", "Long")
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a "
                           f"floating point or complex dtype. Got: {name}")
    if dim is None:
        result = _mean_all(input, None, keepdim or keepdims, as_numpy_dtype(dtype))
    else:
        result = _mean_dims(input, reduced_dims(dim, input._array.ndim), keepdim or keepdims,
                            as_numpy_dtype(dtype))
    return result if out is None else basis.into(out, mean.op, result)


basis.sum = lambda input, dims, keepdim: _sum_dims(input, dims, keepdim, None)
__all__ = ["mean", "public", "sum"]
