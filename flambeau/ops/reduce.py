"""Reductions: sums, means, and their kin."""
from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING, as_numpy_dtype, from_numpy_dtype
from flambeau.core.op import composite, primitive, public, table
from flambeau.core.promotion import convert, type_name
from flambeau.core.shapes import wrap_dim, wrap_dims
from flambeau.core.tensor import Tensor, basis, plain
from flambeau.dispatch.declaration import op
from flambeau.kernels.refused import refuse
from flambeau.ops.comparison import isnan, logical_not
from flambeau.ops.conditional import masked_fill
from flambeau.ops.elementary import exp
from flambeau.ops.join import cat, flip, narrow
from flambeau.ops.node_names import one_node
from flambeau.ops.shape import unsqueeze


def reduced_dims(dim: Any, ndim: int) -> tuple[int, ...] | None:
    """A `dim=` argument of a reduction: None means all, and so does an empty tuple."""
    if dim is None:
        return None
    dims = wrap_dims(dim, ndim)
    return dims if dims and ndim else None


def restore(grad: Tensor, shape: tuple[int, ...], dim: tuple[int, ...] | None,
            keepdim: bool) -> Tensor:
    """A reduced tensor in the shape that broadcasts against what was reduced."""
    if keepdim or not shape or dim is None:
        return grad                     # one number broadcasts as it is
    return basis.unsqueeze_dims(grad, dim)


def sum_type(input: Tensor, dtype: Any, out: Any = None) -> Any:
    """Sums are computed in `dtype`, or in the type of `out=`; else those of booleans and integers
    in int64."""
    if dtype is not None:
        return as_numpy_dtype(dtype)
    if isinstance(out, Tensor):
        return out._array.dtype
    own = input._array.dtype
    return None if own in FLOATING else dtypes.int64.numpy


def _spread(grad: Tensor, self_shape: tuple[int, ...], dim: Any, keepdim: bool) -> Tensor:
    """The gradient of a sum, for each element."""
    return basis.expand(restore(grad, self_shape, dim, keepdim), self_shape)


def _sum_name(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> str:
    """Integers are summed as int64 unless their own type is asked for."""
    own = self.dtype
    return "sum_cpu" if dtype == own or (dtype is None and own in FLOATING) else ""


sum = op(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor",
    kernel=kernels.sum, kind="linear", dims="dim", typed_by_out=True, out="dim_IntList",
    refuses=(_sum_name, "UW8"),
    d_self=_spread,
    doc="""The sum of all elements, or along `dim` (one or several). Integers are summed as int64.

    >>> import flambeau
    >>> flambeau.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """)


def _mean(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    found = self.dtype if dtype is None else dtype
    if found not in FLOATING:
        raise RuntimeError("mean(): could not infer output dtype. "
                           f"{'Input' if dtype is None else 'Optional'} dtype must be either a "
                           "floating point or complex dtype. Got: "
                           f"{type_name(from_numpy_dtype(found))}")
    return kernels.mean(self if dtype is None else convert(self, dtype), dim, keepdim)


def count(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> int:
    """How many elements a reduction over `dim` combines into one."""
    return product(shape) if dim is None else product([shape[d] for d in dim])


mean = op(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    kernel=_mean, kind="linear", dims="dim", refuses=("sum_cpu", "W8"),
    d_self=lambda grad, self_shape, dim, keepdim: _spread(
        grad, self_shape, dim, keepdim) / count(self_shape, dim),
    doc="""The mean of all elements, or along `dim` (one or several).

    >>> import flambeau
    >>> flambeau.tensor([1.0, 3.0]).mean()
    tensor(2.)
    """)


# ---- products -----------------------------------------------------------------------------------


def has_zero(tensor: Tensor) -> bool:
    """Does it hold a zero? True where that cannot be known (inside vmap)."""
    return type(tensor) not in plain or not tensor._array.all()


def _prod_back(grad: Tensor, self: Tensor, result: Tensor, dim: int, keepdim: bool) -> Tensor:
    """grad · (the product of all other elements)"""
    if self._array.ndim == 0:
        return grad
    if not keepdim:
        grad, result = unsqueeze(grad, dim), unsqueeze(result, dim)
    if not has_zero(self):
        return grad * basis.conj(result / self)
    return grad * basis.conj(products_of_others(self, dim))


def products_of_others(input: Tensor, dim: int) -> Tensor:
    """For each element the product of all others along `dim`, right also where some are zero."""
    n = input._array.shape[dim]
    one = basis.ones_like(narrow(input, dim, 0, min(n, 1)))
    before = cat([one, narrow(input, dim, 0, n - 1)], dim) if n else input
    after = cat([narrow(input, dim, 1, n - 1), one], dim) if n else input
    return basis.cumprod(before, dim) * flip(basis.cumprod(flip(after, (dim,)), dim),
                                                   (dim,))


def _prod_kernel(self: np.ndarray, dim: int, keepdim: bool, dtype: Any) -> np.ndarray:
    return kernels.prod(self, dim if self.ndim else None, keepdim, dtype)


@primitive(_prod_kernel, dims="dim", method=False, namespace=None, node_name="ProdBackward1",
           d_self=_prod_back)
def _prod_dim(input: Tensor, dim: int, keepdim: bool, dtype: Any) -> Any:
    return input, dim, keepdim, dtype


@primitive(lambda self, dtype: kernels.prod(self, None, False, dtype), method=False,
           namespace=None, node_name="ProdBackward0",
           batch=lambda size, dims, self, dtype: (
               _prod_dim(basis.rows(self, dims[0], size), 1, False, dtype), 0),
           d_self=lambda grad, self, result: basis.reshape(
               _prod_back(grad, basis.reshape(self, (-1,)), result, 0, False), self._array.shape))
def _prod_all(input: Tensor, dtype: Any) -> Any:
    return input, dtype


@composite(method=True)
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None,
         out: Any = None) -> Tensor:
    """The product of all elements, or along `dim`. Integers are multiplied as int64.

    >>> import flambeau
    >>> flambeau.tensor([2.0, 3.0, 4.0]).prod()
    tensor(24.)
    """
    if dim is None:
        result = _prod_all(input, sum_type(input, dtype, out))
    else:
        if not isinstance(dim, int):
            raise TypeError(f"prod() received an invalid combination of arguments: dim is of type "
                            f"{type(dim).__name__}, expected int")
        result = _prod_dim(input, wrap_dim(dim, input._array.ndim), keepdim,
                           sum_type(input, dtype, out))
    return result if out is None else basis.into(out, prod.op, result)


# ---- leaving out NaN ----------------------------------------------------------------------------


@composite(method=True)
@one_node
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
           out: Any = None) -> Tensor:
    """The sum of the elements that are not NaN.

    >>> import flambeau
    >>> flambeau.tensor([1.0, float("nan")]).nansum()
    tensor(1.)
    """
    if input._array.dtype.kind in "cW":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if input._array.dtype in FLOATING:
        input = masked_fill(input, isnan(input), 0)
    if dtype is None and out is not None:
        dtype = out.dtype
    result = sum(input, dim, keepdim, dtype=dtype)
    return result if out is None else basis.into(out, nansum.op, result)


@composite(method=True)
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
            out: Any = None) -> Tensor:
    """The mean of the elements that are not NaN."""
    if input._array.dtype not in FLOATING:
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but "
                           f"got {type_name(input.dtype)}")
    factor = sum(logical_not(isnan(input)), dim, keepdim)
    result = nansum(input, dim, keepdim, dtype=dtype) / factor
    return result if out is None else basis.into(out, nanmean.op, result)


# ---- truth and counting -------------------------------------------------------------------------


def _truth(name: str, kernel: Any, doc: str) -> Any:
    def reduced(self: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
        if dim == ():
            result = kernels.not_equal(self, 0) if self.dtype.kind != "b" else self.copy()
        else:
            result = kernel(self, dim if self.ndim else None, keepdim)
        return kernels.cast(result, np.uint8) if self.dtype == np.uint8 else result

    @primitive(reduced, dims="dim", name=name)
    def truth(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is not None:
            dim = wrap_dims(dim, input._array.ndim)
        return input, dim, keepdim

    truth.__doc__ = truth.op.doc = doc
    return truth


all = _truth("all", kernels.all, """Are all elements, or all along `dim`, not zero?

    >>> import flambeau
    >>> flambeau.tensor([[True, False], [True, True]]).all(dim=1)
    tensor([False,  True])
    """)
any = _truth("any", kernels.any, "Is any element, or any along `dim`, not zero?")


@composite(method=True)
def count_nonzero(input: Tensor, dim: Any = None, *dims: Any) -> Tensor:
    """How many elements differ from zero, in all or along `dim`."""
    if dim is None:
        refuse(input._array, "U8", "nonzero_count_cpu")
    return sum(input != 0, (dim, *dims) if dims else dim)


# ---- in the exponent ----------------------------------------------------------------------------


def _logsumexp_back(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    shape = self._array.shape
    weight = exp(self - restore(result, shape, dim, keepdim))
    return restore(grad, shape, dim, keepdim) * basis.conj(weight)


@primitive(lambda self, dim, keepdim: kernels.logsumexp(self, dim if self.ndim else None, keepdim),
           dims="dim", d_self=_logsumexp_back, namespace=("torch", "special"))
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Any:
    """log(Σ exp(input)) along `dim`, computed without overflow.

    >>> import flambeau
    >>> flambeau.tensor([1000.0, 1000.0]).logsumexp(0)
    tensor(1000.6932)
    """
    if input._array.dtype not in FLOATING:
        input = basis.cast(input, dtypes.default_float())
    dims = wrap_dims(dim, input._array.ndim)
    return input, dims or None, keepdim


sum_along = table["sum.dim_IntList"].call
basis.sum = lambda input, dims, keepdim: sum_along(input, dims, keepdim, None)
__all__ = ["all", "any", "mean", "prod", "public", "sum"]
