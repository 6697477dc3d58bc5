"""Running results along a dimension: sums, products, extremes, log-sum-exps.

A tensor without dimensions takes 0 and -1 as `dim`, as if it had one; but its shape has no entry of
that place, so formulas ask for `ndim` before `shape[dim]`. Its running result is the tensor itself.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core.dtypes import bool_
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor, plain_types, wrap
from flambeau.dispatch.declaration import op
from flambeau.kernels.refused import characters, unless_one
from flambeau.ops.factory.create import eye, ones
from flambeau.ops.indexing.gather import gather
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.pointwise.arithmetic import abs
from flambeau.ops.pointwise.complex import conjugated
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.pointwise.elementary import exp, log
from flambeau.ops.reduction.minmax import put_along
from flambeau.ops.reduction.sums import has_zero
from flambeau.ops.view.conversion import contiguous
from flambeau.ops.view.diagonal import triu
from flambeau.ops.view.rearranging import flip
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import unsqueeze


def _in_row_order(kernel: Any) -> Any:
    """A kernel whose result lies in rows also where it is of another type than the input."""
    def run(x: np.ndarray, axis: int, dtype: Any) -> np.ndarray:
        if dtype is not None and dtype != x.dtype:
            x = np.ascontiguousarray(x) if x.ndim else x
        elif not x.ndim and x.dtype.kind not in "bui":
            return x.copy()
        return kernel(x, axis, dtype)
    return run


def _scan_speaker(name: str) -> Any:
    """A single number is no scan, and a `dtype` is what is added in."""
    return lambda self, dim, dtype: name if self.ndim and (
        dtype is None or np.dtype(dtype).char in characters("W8")) else ""


# ---- sums ---------------------------------------------------------------------------------------


def _from_the_end(x: Tensor, dim: int) -> Tensor:
    """The sum of each element and all behind it along `dim`."""
    if not x._array.ndim or x._array.shape[dim] < 2:
        return x
    return flip(cumsum(flip(x, (dim,)), dim), (dim,))


cumsum = op(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    kernel=_in_row_order(kernels.cumsum), kind="linear", dims="dim", shape="self",
    typed_by_out=True, inplace=True, refuses=(_scan_speaker("cumsum_out_cpu"), "W8"),
    out_type=OUT_TYPE, overlap="element",
    d_self=lambda grad, dim: _from_the_end(grad, dim),
    doc="""The sum of each element and all before it along `dim`.

    >>> import flambeau
    >>> flambeau.tensor([1.0, 2.0, 3.0]).cumsum(0)
    tensor([1., 3., 6.])
    """)


# ---- pairs of elements along a dimension ---------------------------------------------------------


def _pair_mask(mask: Any, self: Tensor, dim: int) -> Tensor:
    """A mask of rows and columns, where `dim` and the dimension after it count those."""
    n, after = self._array.shape[dim], self._array.ndim - dim - 1
    return reshape(mask(n, dtype=bool_), (n, n, *[1] * after))


def _row_before_column(n: int, dtype: Any) -> Tensor:
    """Is the column not before the row?"""
    return triu(ones(n, n, dtype=dtype))


# ---- products -----------------------------------------------------------------------------------


def _cumprod_vjp(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """For element i the sum over k ≥ i of grad_k · (the product of the first k but element i)."""
    if not self._array.ndim:
        return grad
    if not has_zero(self):
        return _from_the_end(grad * conjugated(result), dim) / conjugated(self)
    if not (grad_enabled() or interceptors or type(grad) not in plain_types):
        return _cumprod_back_with_zeros(grad, self, result, dim)
    # row i of `others` is the input with a 1 in place i
    others = where(_pair_mask(eye, self, dim), 1, unsqueeze(self, dim))
    so_far = where(_pair_mask(_row_before_column, self, dim), conjugated(cumprod(others, dim + 1)),
                   0)
    return (so_far * unsqueeze(grad, dim)).sum(dim + 1)


def _cumprod_back_with_zeros(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """In linear time, but not to be differentiated: beyond the first zero every product has that
    factor, and its own derivative is a sum of the products without it."""
    zeros = (self == 0).cumsum(dim)
    first = (self == 0) & (zeros == 1)
    without = cumprod(where(first, 1, self), dim)
    before = _from_the_end(grad * conjugated(result), dim) / conjugated(self)
    at_first = _from_the_end(grad * conjugated(without), dim)
    return contiguous(where(first, at_first, where(zeros == 0, before, 0)))


cumprod = op(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    kernel=_in_row_order(kernels.cumprod), dims="dim", shape="self", typed_by_out=True,
    inplace=True, out_type=OUT_TYPE, overlap="element",
    refuses=(_scan_speaker("cumprod_out_cpu"), "W8"),
    d_self=_cumprod_vjp,
    doc="""The product of each element and all before it along `dim`.

    >>> import flambeau
    >>> flambeau.tensor([1.0, 2.0, 3.0]).cumprod(0)
    tensor([1., 2., 6.])
    """)


# ---- log-sum-exps -------------------------------------------------------------------------------


def _logcumsumexp_vjp(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """For element i the sum over k ≥ i of grad_k · exp(self_i - result_k)."""
    if not self._array.ndim:
        return grad
    if grad_enabled() or interceptors or type(grad) not in plain_types or self.is_complex():
        return _transfer_gradient(grad, self, result, dim)
    positive, negative = (
        exp(_scan_vjp(where(part, log(abs(grad)), -float("inf"))
                            - result, dim) + self) for part in (grad > 0, grad < 0))
    return positive - negative


def _scan_vjp(input: Tensor, dim: int) -> Tensor:
    found = kernels.logcumsumexp(np.flip(input._array, dim), dim)
    return wrap(np.ascontiguousarray(np.flip(found, dim)))


def _weights(self: Tensor, result: Tensor, dim: int) -> Tensor:
    """exp(self_i - result_k) for i ≤ k, in row i and column k."""
    apart = unsqueeze(self, dim + 1) - unsqueeze(result, dim)
    return exp(where(_pair_mask(_row_before_column, self, dim), apart, -float("inf")))


def _transfer_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    return (conjugated(_weights(self, result, dim)) * unsqueeze(grad, dim)).sum(dim + 1)


def _logcumsumexp_jvp(self_t: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if not self._array.ndim:
        return self_t
    return (_weights(self, result, dim) * unsqueeze(self_t, dim + 1)).sum(dim)


logcumsumexp = op(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    kernel=kernels.logcumsumexp, dims="dim", shape="self",
    refuses=("logcumsumexp_out_cpu", "bBilUW8"),
    out_type="expected scalar_type {found} but found {out}", out_first=True, overlap="element",
    d_self=_logcumsumexp_vjp, jvp=_logcumsumexp_jvp,
    doc="log(Σ exp) of each element and all before it along `dim`, computed without overflow.")


# ---- extremes -----------------------------------------------------------------------------------

def _declare_cummax(name: str, kernel: Any, which: str) -> Any:
    """`cummax` or `cummin`: of equal elements the last counts, and the first NaN stays."""
    def checked(self: Tensor, dim: int) -> tuple[Tensor, int]:
        if not self._array.ndim and dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        return self, wrap_dim(dim, self._array.ndim)

    return op(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        kernel=kernel, dims="dim", shape="self", canonical=checked,
        refuses=(unless_one(f"{name}_cpu"), "UcW8"),
        out_type="expected scalar_type {found} but found {out}", overlap="anywhere",
        d_self=lambda grad, indices, self_shape, dim: (
            put_along(grad, indices, self_shape, dim) if self_shape else grad),
        jvp=lambda self_t, indices, dim: (
            gather(self_t, dim, indices) if self_t._array.ndim else self_t, None),
        doc=f"The {which} of each element and all before it along `dim`, and its position.")


cummax = _declare_cummax("cummax", kernels.cummax, "largest")
cummin = _declare_cummax("cummin", kernels.cummin, "smallest")

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]
