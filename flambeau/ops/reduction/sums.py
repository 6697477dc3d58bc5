"""Reductions: sums, means, and their kin."""
from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core.dtypes import FLOATING, as_numpy_dtype, from_numpy_dtype
from flambeau.core.op import public, table
from flambeau.core.promotion import convert, type_name
from flambeau.core.shapes import written_shape_error
from flambeau.core.tensor import Tensor, plain_types, wrap
from flambeau.dispatch.declaration import op
from flambeau.kernels.refused import characters, no_kernel
from flambeau.ops.factory.create import eye, ones_like
from flambeau.ops.out_types import of_given_type
from flambeau.ops.pointwise.comparison import isnan, logical_not
from flambeau.ops.pointwise.complex import conjugated
from flambeau.ops.pointwise.conditional import masked_fill
from flambeau.ops.pointwise.elementary import exp
from flambeau.ops.view.join import cat
from flambeau.ops.view.rearranging import flip
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_as_rows, expand_to, movedim, unsqueeze, unsqueeze_dims
from flambeau.ops.view.splitting import narrow


def restore(grad: Tensor, shape: tuple[int, ...], dim: tuple[int, ...] | None,
            keepdim: bool) -> Tensor:
    """A reduced tensor in the shape that broadcasts against what was reduced."""
    if keepdim or not shape or dim is None:
        return grad                     # one number broadcasts as it is
    return unsqueeze_dims(grad, dim)


def _sum_vjp(grad: Tensor, self_shape: tuple[int, ...], dim: Any, keepdim: bool) -> Tensor:
    """The gradient of a sum, for each element."""
    return expand_to(restore(grad, self_shape, dim, keepdim), self_shape)


def _sum_name(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> str:
    """Integers are summed as int64 unless their own type is asked for."""
    own = self.dtype
    return "sum_cpu" if dtype == own or (dtype is None and own in FLOATING) else ""


sum = op(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor",
    kernel=kernels.sum, kind="linear", dims="dim", typed_by_out=True, out="dim_IntList",
    refuses=(_sum_name, "UW8"), overlap="anywhere", out_type=of_given_type,
    d_self=_sum_vjp,
    doc="""The sum of all elements, or along `dim` (one or several). Integers are summed as int64.

    >>> import flambeau
    >>> flambeau.ones(2, 3).sum(dim=1)
    tensor([3., 3.])
    """)


def _check_mean(self: Any, *rest: Any) -> None:
    dtype = rest[-1] if isinstance(rest[-1], np.dtype) else as_numpy_dtype(rest[-1])
    found = self._array.dtype if dtype is None else dtype
    if found not in FLOATING:
        raise RuntimeError("mean(): could not infer output dtype. "
                           f"{'Input' if dtype is None else 'Optional'} dtype must be either a "
                           "floating point or complex dtype. Got: "
                           f"{type_name(from_numpy_dtype(found))}")


def _mean_kernel(self: np.ndarray, dim: Any, keepdim: bool, dtype: Any) -> np.ndarray:
    if (self.dtype if dtype is None else dtype) not in FLOATING:
        _check_mean(wrap(self), dtype)
    return kernels.mean(self if dtype is None else convert(self, dtype), dim, keepdim)


def count(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> int:
    """How many elements a reduction over `dim` combines into one."""
    return product(shape) if dim is None else product([shape[d] for d in dim])


def _mean_out_type(read: Any, out: Any, found: Any) -> str:
    if read[1] is None:
        return "mean.dtype_out(): input types can't be cast to the desired output type {out}"
    return "" if found.is_complex else "result type Float can't be cast to the desired output " \
        "type {out}"                # the sum is of that type, then divided


mean = op(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    kernel=_mean_kernel, kind="linear", dims="dim", first=_check_mean, out_cast=_mean_out_type,
    out_type=of_given_type, refuses=("sum_cpu", "W8"),
    d_self=lambda grad, self_shape, dim, keepdim: _sum_vjp(
        grad, self_shape, dim, keepdim) / count(self_shape, dim),
    doc="""The mean of all elements, or along `dim` (one or several).

    >>> import flambeau
    >>> flambeau.tensor([1.0, 3.0]).mean()
    tensor(2.)
    """)


# ---- products -----------------------------------------------------------------------------------


def has_zero(tensor: Tensor) -> bool:
    """Does it hold a zero? True where that cannot be known (inside vmap)."""
    return type(tensor) not in plain_types or not tensor._array.all()


def _prod_vjp(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """grad · (the product of all other elements)"""
    if self._array.ndim == 0:
        return grad
    if dim is None:
        flat = reshape(self, (-1,))
        return reshape(_prod_vjp(grad, flat, result, 0, False), self._array.shape)
    if not keepdim:
        grad, result = unsqueeze(grad, dim), unsqueeze(result, dim)
    if not has_zero(self):
        return grad * conjugated(result / self)
    return grad * conjugated(products_of_others(self, dim))


def products_of_others(input: Tensor, dim: int) -> Tensor:
    """For each element the product of all others along `dim`, right also where some are zero."""
    n = input._array.shape[dim]
    one = ones_like(narrow(input, dim, 0, min(n, 1)))
    before = cat([one, narrow(input, dim, 0, n - 1)], dim) if n else input
    after = cat([narrow(input, dim, 1, n - 1), one], dim) if n else input
    return before.cumprod(dim) * flip(flip(after, (dim,)).cumprod(dim), (dim,))


def _prod_batched(size: int, dims: Any, self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dim is not None:
        return NotImplemented
    return table["prod.dim_int"].call(batch_as_rows(self, dims[0], size), 1, False, dtype), 0


prod = op(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    kernel=kernels.prod, dims="dim", typed_by_out=True, out="dim_int", overlap="anywhere",
    autocast="full", out_type=of_given_type,
    refuses=(lambda self, dim, keepdim, dtype: (
        "prod_out_cpu" if _sum_name(self, dim, keepdim, dtype) else ""), "UW8"),
    batch=_prod_batched, d_self=_prod_vjp,
    doc="""The product of all elements, or along `dim`. Integers are multiplied as int64.

    >>> import flambeau
    >>> flambeau.tensor([2.0, 3.0, 4.0]).prod()
    tensor(24.)
    """)


# ---- leaving out NaN ----------------------------------------------------------------------------


def _sum_out_type(read: Any, out: Any, found: Any) -> str:
    if found.is_floating_point and not out.is_floating_point:
        raise no_kernel("nansum_cpu", out.numpy)
    return "nansum: provided dtype must match dtype of result. Got {out} and {found}." \
        if read[-1] is not None else ""


nansum = op(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor",
    kernel=kernels.nansum, dims="dim", typed_by_out="floating", out_type=_sum_out_type,
    refuses=(lambda self, *rest: "nansum on CPU does not support complex inputs"
             if self.dtype.kind in "cW" else _sum_name(self, *rest) and "nansum_cpu", "UW8"),
    overlap="anywhere", d_self=lambda grad, self, dim, keepdim: masked_fill(
        _sum_vjp(grad, self._array.shape, dim, keepdim), isnan(self), 0),
    jvp=lambda self_t, self, dim, keepdim, dtype: sum_over(
        masked_fill(self_t, isnan(self), 0), dim, keepdim),
    doc="""The sum of the elements that are not NaN.

    >>> import flambeau
    >>> flambeau.tensor([1.0, float("nan")]).nansum()
    tensor(1.)
    """)


def _nanmean(self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    if self._array.dtype not in FLOATING:
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but "
                           f"got {type_name(self.dtype)}")
    if dtype is not None and not dtype.is_floating_point and not dtype.is_complex:
        raise RuntimeError("nanmean(): could not infer output dtype. Optional dtype must be either "
                           f"a floating point or complex dtype. Got: {type_name(dtype)}")
    count_of = sum(logical_not(isnan(self)), dim, keepdim)
    return nansum(self, dim, keepdim, dtype=dtype) / count_of


nanmean = op(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor",
    body=_nanmean, out_reported_as="nansum", out_type=_sum_out_type,
    doc="The mean of the elements that are not NaN.")


# ---- truth and counting -------------------------------------------------------------------------


def _declare_all(name: str, kernel: Any, doc: str) -> Any:
    return op(f"{name}(Tensor self) -> Tensor",
              f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
              f"{name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
              kernel=kernel, some_dims="dim", overlap="anywhere", doc=doc,
              out_first=bool, out_reported_as=False,
              out_cast=f"{name} only supports bool tensor for result, got: {{out}}")


all = _declare_all("all", kernels.all, """Are all elements, or all along `dim`, not zero?

    >>> import flambeau
    >>> flambeau.tensor([[True, False], [True, True]]).all(dim=1)
    tensor([False,  True])
    """)
any = _declare_all("any", kernels.any, "Is any element, or any along `dim`, not zero?")

count_nonzero = op(
    "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    kernel=kernels.count_nonzero, dims="dim", out=False,
    refuses=(lambda self, dim: "nonzero_count_cpu" if dim is None else "", "U8"),
    doc="How many elements differ from zero, in all or along `dim`.")

trace = op(
    "trace(Tensor self) -> Tensor", kernel=kernels.trace, kind="linear", out=False, autocast="full",
    refuses=("trace", "bUW8"),
    batch=lambda size, dims, self: (
        movedim(self, dims[0], 0).diagonal(0, 1, 2).sum(-1), 0),
    d_self=lambda grad, self_shape: grad * eye(*self_shape, dtype=grad.dtype),
    doc="""The sum of the diagonal of a matrix.

    >>> import flambeau
    >>> flambeau.eye(3).trace()
    tensor(3.)
    """)


# ---- in the exponent ----------------------------------------------------------------------------


def _logsumexp_vjp(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    shape = self._array.shape
    weight = exp(self - restore(result, shape, dim, keepdim))
    return restore(grad, shape, dim, keepdim) * conjugated(weight)


def _logsumexp_kernel(self: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
    if dim is None and not keepdim and self.ndim and self.size:     # of `()`: it drops none
        raise written_shape_error((), (1,) * self.ndim)
    return kernels.logsumexp(self, dim, keepdim)


logsumexp = op(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    kernel=_logsumexp_kernel, dims="dim", floating=True,
    out_cast="logsumexp(): Expected floating point type for result tensor, but got: {out}",
    refuses=(lambda self, *_: "exp_vml_cpu" if self.dtype.char in characters("W")
             else "max_values_cpu", "W8"),
    aliases=("special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",),
    d_self=_logsumexp_vjp,
    doc="""log(Σ exp(input)) along `dim`, computed without overflow.

    >>> import flambeau
    >>> flambeau.tensor([1000.0, 1000.0]).logsumexp(0)
    tensor(1000.6932)
    """)


def sum_over(input: Tensor, dims: Any, keepdim: bool) -> Tensor:
    """The sum along `dims`, as the overload for dimensions computes it."""
    return _sum_dim(input, dims, keepdim, None)


_sum_dim = table["sum.dim_IntList"].call
__all__ = ["all", "any", "mean", "prod", "public", "sum"]
