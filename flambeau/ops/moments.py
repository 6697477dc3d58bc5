"""Variances, norms, covariances and quantiles."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING, as_numpy_dtype
from flambeau.core.op import composite, primitive
from flambeau.core.promotion import type_name
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor, basis, wrap
from flambeau.kernels.reference import compute_dtype, real_dtype
from flambeau.kernels.views import part
from flambeau.ops.coercion import check_tensors, values_below
from flambeau.ops.comparison import isnan, logical_not
from flambeau.ops.complex import join_parts
from flambeau.ops.conditional import clamp, masked_fill, where
from flambeau.ops.extremes import evenly
from flambeau.ops.gather import gather
from flambeau.ops.node_names import one_node
from flambeau.ops.pointwise import abs, lerp, pow, sgn
from flambeau.ops.reduce import count, mean, reduced_dims, restore, sum
from flambeau.ops.shape import movedim, reshape, squeeze, unsqueeze
from flambeau.ops.sort import sort

# ---- variance and standard deviation ------------------------------------------------------------


def _rounding_once(kernel: Any) -> Any:
    """Half types in float32, whose range the sums of squares need."""
    def run(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
        if self.dtype.itemsize > 2:
            return kernel(self, dim, correction, keepdim)
        found = kernel(kernels.cast(self, np.float32), dim, correction, keepdim)
        return tuple([kernels.cast(x, self.dtype) for x in found])
    return run


@_rounding_once
def _moments(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
    if self.dtype.kind == "W":              # the parts each round
        (x, re), (y, im) = [_moments(part(self, name), dim, correction, keepdim)
                            for name in ("real", "imag")]
        return kernels.add(x, y), join_parts(re, im)
    middle, squares = kernels.moments(self, dim if self.ndim else None, keepdim)
    free = count(self.shape, dim if self.ndim else None) - correction
    return kernels.divide(squares, float(free if free > 0 else 0)), middle


def _var_back(grad: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    """grad · 2 (self - mean) / (n - correction)"""
    shape = self._array.shape
    free = count(shape, dim) - correction
    middle = mean(self, dim, True) if self._array.ndim else self
    return restore(grad, shape, dim, keepdim) * (self - middle) * (2 / free if free else
                                                                   float("inf"))


def _std_back(grad: Tensor, self: Tensor, result: Tensor, dim: Any, correction: Any,
              keepdim: bool) -> Tensor:
    slope = where(result == 0, 0, grad / (result * 2))
    return _var_back(slope, self, dim, correction, keepdim)


def _var_kernel(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> np.ndarray:
    return _moments(self, dim, correction, keepdim)[0]


def _std_kernel(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> np.ndarray:
    return _std_mean(self, dim, correction, keepdim)[0]


@_rounding_once
def _std_mean(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
    variance, middle = _moments(self, dim, correction, keepdim)
    return kernels.sqrt(variance), middle


def _mean_back(grad: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    shape = self._array.shape
    return basis.expand(restore(grad, shape, dim, keepdim), shape) / count(shape, dim)


def _with_mean(spread: Any, grad: Any, self: Tensor, dim: Any, keepdim: bool) -> Any:
    """The gradient through the spread (None if there is none), and that through the mean."""
    if grad[1] is None:
        return (spread,)
    part = _mean_back(grad[1], self, dim, keepdim)
    return (part if spread is None else spread + part,)


def _var_mean_back(grad: Any, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    spread = None if grad[0] is None else _var_back(grad[0], self, dim, correction, keepdim)
    return _with_mean(spread, grad, self, dim, keepdim)


def _std_mean_back(grad: Any, self: Tensor, result0: Tensor, dim: Any, correction: Any,
                   keepdim: bool) -> Any:
    spread = None if grad[0] is None else _std_back(grad[0], self, result0, dim, correction,
                                                    keepdim)
    return _with_mean(spread, grad, self, dim, keepdim)


_HIDDEN = {"dims": "dim", "method": False, "namespace": None}


@primitive(_var_kernel, d_self=_var_back, node_name="VarBackward0", **_HIDDEN)
def _var(input: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    return input, dim, correction, keepdim


@primitive(_std_kernel, d_self=_std_back, node_name="StdBackward0", **_HIDDEN)
def _std(input: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    return input, dim, correction, keepdim


@primitive(_moments, returns=tuple, node_name="VarMeanBackward0", **_HIDDEN,
           vjp=_var_mean_back)
def _var_mean(input: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    return input, dim, correction, keepdim


@primitive(_std_mean, returns=tuple, node_name="StdMeanBackward0", **_HIDDEN,
           vjp=_std_mean_back)
def _std_and_mean(input: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    return input, dim, correction, keepdim


def _spread(name: str, op: Any, doc: str, method: bool = True) -> Any:
    """The public signature that var, std, var_mean and std_mean share."""
    def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
            correction: Any = None, out: Any = None) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if input._array.dtype not in FLOATING:
            kind = "std and var" if method else name
            raise RuntimeError(f"{kind} only support floating point and complex dtypes")
        if correction is None:
            correction = 1 if unbiased is None or unbiased else 0
        dims = reduced_dims(dim, input._array.ndim)
        if count(input._array.shape, dims) <= correction:
            warnings.warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly "
                          "less than the reduction factor (input numel divided by output numel).",
                          UserWarning, stacklevel=3)
        result = op(input, dims, correction, keepdim)
        return result if out is None else basis.into(out, var.op, result)

    var.__name__, var.__doc__ = name, doc
    var = composite(var, method=method)
    return var


var = _spread("var", _var, """The variance of all elements, or along `dim`: the sum of the squared
    distances from the mean over n - correction.

    >>> import flambeau
    >>> flambeau.tensor([1.0, 3.0]).var(), flambeau.tensor([1.0, 3.0]).var(correction=0)
    (tensor(2.), tensor(1.))
    """)
std = _spread("std", _std, "The standard deviation, the square root of `var`.")
var_mean = _spread("var_mean", _var_mean, "The variance and the mean.", False)
std_mean = _spread("std_mean", _std_and_mean, "The standard deviation and the mean.", False)

# ---- norms --------------------------------------------------------------------------------------


def _norm_kernel(self: np.ndarray, ord: float, dim: Any, keepdim: bool) -> np.ndarray:
    dim = dim if self.ndim else None
    wide = compute_dtype(self.dtype)
    if wide != self.dtype:                  # sums of powers leave the range of half types
        return kernels.cast(_norm_kernel(kernels.cast(self, wide), ord, dim, keepdim),
                            real_dtype(self.dtype))
    size = kernels.absolute(self) if ord != 2 or self.dtype.kind in "cW" else self
    if ord == 2:
        return kernels.sqrt(kernels.sum(kernels.square(size), dim, keepdim))
    if ord == 0:
        return kernels.sum(kernels.cast(size != 0, size.dtype), dim, keepdim)
    if ord == 1:
        return kernels.sum(size, dim, keepdim)
    if np.isinf(ord):
        return (kernels.max if ord > 0 else kernels.min)(size, dim, keepdim)
    return kernels.power(kernels.sum(kernels.power(size, ord), dim, keepdim), 1 / ord)


def _norm_back(grad: Tensor, self: Tensor, result: Tensor, ord: float, dim: Any,
               keepdim: bool) -> Tensor:
    """The subgradient that is zero where the norm has none."""
    shape = self._array.shape
    g, norm = restore(grad, shape, dim, keepdim), restore(result, shape, dim, keepdim)
    if ord == 0:
        return basis.zeros_like(self)
    if ord == 1:
        return sgn(self) * g
    if ord == 2:
        return self * where(norm == 0, 0, g / norm)
    size = abs(self)
    if np.isinf(ord):
        return sgn(self) * evenly(grad, size, result, dim, keepdim)
    zero = size == 0 if 0 < ord < 2 else norm == 0
    slope = pow(where(zero, 1, size) / where(zero, 1, norm), ord - 1)
    return sgn(self) * where(zero, 0, slope) * g


@primitive(_norm_kernel, d_self=_norm_back, node_name="LinalgVectorNormBackward0", **_HIDDEN)
def _vector_norm(input: Tensor, ord: float, dim: Any, keepdim: bool) -> Any:
    return input, ord, dim, keepdim


@composite(namespace="linalg")
def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *,
                dtype: Any = None, out: Any = None) -> Tensor:
    """(Σ |x|^ord)^(1/ord) over all elements, or along `dim`; ±inf is the extreme |x|, 0 counts.

    >>> import flambeau
    >>> flambeau.linalg.vector_norm(flambeau.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return norm_of(x, ord, dim, keepdim, dtype, out)


def norm_of(x: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Tensor:
    """The vector norm, once the arguments are known not to override it."""
    if x._array.dtype not in FLOATING:
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as "
                           f"input. Got {type_name(x.dtype)}")
    wanted = None if dtype is None else as_numpy_dtype(dtype)
    if wanted is not None and wanted not in FLOATING:
        raise RuntimeError("linalg.vector_norm: dtype should be floating point or complex, but got "
                           f"{type_name(dtypes.from_numpy_dtype(wanted))}")
    if wanted is not None and x._array.dtype != wanted:
        if x.is_complex() != (wanted.kind in "cW"):
            raise RuntimeError(f"linalg.vector_norm: dtype should be "
                               f"{'complex' if x.is_complex() else 'real'} for "
                               f"{'complex' if x.is_complex() else 'real'} inputs, but got "
                               f"{type_name(dtypes.from_numpy_dtype(wanted))}")
        x = basis.cast(x, wanted)
    dims = reduced_dims(dim, x._array.ndim)
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of "
                           "norm.")
    if (ord < 0 or np.isinf(ord)) and not count(x._array.shape, dims):
        raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor "
                           "because the operation does not have an identity")
    result = _vector_norm(x, float(ord), dims, keepdim)
    return result if out is None else basis.into(out, vector_norm.op, result)


@composite(method=True)
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None,
         dtype: Any = None) -> Tensor:
    """The vector norm of order `p` of all elements, or along `dim`; "nuc" is the nuclear norm of
    matrices.

    >>> import flambeau
    >>> flambeau.norm(flambeau.tensor([3.0, -4.0]), p=1)
    tensor(7.)
    """
    if isinstance(p, str) and p != "fro":
        import flambeau
        dims = tuple(range(input._array.ndim)) if dim is None else dim
        return flambeau.linalg.matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
    order = 2.0 if p is None or p == "fro" else p
    return norm_of(input, order, dim, keepdim, dtype, out)


@composite
def frobenius_norm(input: Tensor, dim: Any = (), keepdim: bool = False, *,
                   out: Any = None) -> Tensor:
    """The square root of the sum of squares along `dim`; an older name."""
    return vector_norm(input, 2, dim, keepdim, out=out)


@composite
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False, *,
                 out: Any = None) -> Tensor:
    """The sum of the singular values; an older name of `linalg.matrix_norm(ord="nuc")`."""
    return norm(input, "nuc", dim, keepdim, out=out)


@composite(method=True)
@one_node
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order `p` of input - other."""
    check_tensors("dist", input=input, other=other)
    return vector_norm(input - other, p)


@composite(method=True, inplace=True)
@one_node
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Tensor:
    """The slices along `dim`, scaled down to norm `maxnorm` where their norm of order `p` is
    larger."""
    if input._array.ndim < 2:
        raise RuntimeError("renorm: input needs at least 2 dimensions, got "
                           f"{input._array.ndim} dimensions")
    for name, number in (("p", p), ("maxnorm", maxnorm)):
        if isinstance(number, complex):
            raise RuntimeError(f"renorm: {name} must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    own = wrap_dim(dim, input._array.ndim)
    others = tuple([i for i in range(input._array.ndim) if i != own])
    size = vector_norm(input, p, others, True)
    result = input * where(size > maxnorm, maxnorm / (size + 1e-7), 1)
    return result if out is None else basis.into(out, renorm.op, result, (input,))


# ---- covariance ---------------------------------------------------------------------------------


@composite(method=True)
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None,
        aweights: Tensor | None = None) -> Tensor:
    """The covariance matrix of the variables in the rows of `input`, whose columns are
    observations; `fweights` counts them, `aweights` weighs them."""
    if input._array.ndim > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input "
                           f"with {input._array.ndim} dimensions")
    if input._array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input if input._array.ndim == 2 else reshape(input, (1, -1))
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None:
            _check_weights(name, weights, rows._array.shape[1])
    weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    n = rows._array.shape[1]
    if weights is None:
        total, middle = n, mean(basis_float(rows), 1, True)
    else:
        total = sum(weights)
        middle = sum(rows * weights, 1, True) / total
    free = total - correction
    if aweights is not None and correction != 0:
        free = total - correction * sum(weights * aweights) / total
    if not isinstance(free, Tensor) or (free._array.size == 1 and not isinstance(free, int)):
        value = values_below(free) if isinstance(free, Tensor) else np.asarray(free)
        if (value <= 0).any():
            warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less "
                          "than the number of observations.", UserWarning, stacklevel=3)
        free = clamp(free, min=0) if isinstance(free, Tensor) else max(free, 0)
    centred = rows - middle
    weighted = centred if weights is None else centred * weights
    product = basis.matmul(centred, basis.conj(weighted.t()))
    return squeeze(product / free)


def _check_weights(name: str, weights: Tensor, n: int) -> None:
    kind = "integral" if name == "fweights" else "floating point"
    if weights._array.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} "
                           f"with {weights._array.ndim} dimensions")
    if (weights._array.dtype.kind in "ui") != (kind == "integral") or weights.is_complex():
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with "
                           f"{type_name(weights.dtype)} dtype")
    if weights._array.size != n:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are "
                           f"observations in the input but got {weights._array.size} != {n}")
    if (values_below(weights) < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")


def basis_float(input: Tensor) -> Tensor:
    """Integers as numbers of the default floating type."""
    if input._array.dtype in FLOATING:
        return input
    return basis.cast(input, dtypes.default_float())


@composite(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """The matrix of correlations of the variables in the rows of `input`."""
    if input._array.ndim > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an "
                           f"input with {input._array.ndim} dimensions")
    matrix = cov(input)
    if not matrix._array.ndim:
        return matrix / matrix
    scale = basis.sqrt(basis.real(matrix.diagonal()))
    matrix = matrix / unsqueeze(scale, 1) / scale
    return matrix if matrix.is_complex() else clamp(matrix, -1, 1)


# ---- quantiles ----------------------------------------------------------------------------------


def _quantile(input: Tensor, q: Any, dim: int | None, keepdim: bool,
              interpolation: str, skip_nan: bool) -> Tensor:
    if not input._array.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if input._array.dtype.name not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError("quantile() interpolation must be one of linear, lower, higher, "
                           f"midpoint or nearest, but got {interpolation}")
    q = _quantile_points(input, q)
    ndim = input._array.ndim
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
        if keepdim and ndim > 1:
            input = reshape(input, (1,) * (ndim - 1) + (-1,))
            dim = ndim - 1
    last = movedim(input if input._array.ndim else reshape(input, (1,)), dim, -1)
    ordered = sort(last)[0]
    size = ordered._array.shape[-1]
    if skip_nan:
        usable = sum(logical_not(isnan(ordered)), -1, True)
        ranks = clamp(q * (usable - 1), min=0)
    else:
        ranks = masked_fill(q * (size - 1) + basis.zeros_like(ordered.narrow(-1, 0, 1)),
                            isnan(ordered).any(-1, True), size - 1)
    result = _at_ranks(ordered, basis.cast(ranks, input._array.dtype), interpolation)
    if q._array.ndim:
        result = movedim(result, -1, 0)
        return unsqueeze(result, dim % max(ndim, 1) + 1) if keepdim and ndim else result
    result = squeeze(result, -1)
    return unsqueeze(result, dim) if keepdim and ndim else result


def _quantile_points(input: Tensor, q: Any) -> Tensor:
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        return wrap(np.asarray(q, input._array.dtype))
    if q._array.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not ((q._array >= 0) & (q._array <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def _at_ranks(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """The elements at fractional positions along the last dimension."""
    import flambeau
    whole = {"lower": flambeau.floor, "higher": flambeau.ceil, "nearest": flambeau.round}
    if interpolation in whole:
        return gather(ordered, -1, whole[interpolation](ranks).long())
    below, above = flambeau.floor(ranks), flambeau.ceil(ranks)
    weight = ranks - below if interpolation == "linear" else basis.zeros_like(ranks) + 0.5
    if interpolation == "midpoint":
        weight = where(above == below, 0, weight)
    return lerp(gather(ordered, -1, below.long()), gather(ordered, -1, above.long()), weight)


@composite(method=True)
def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
             interpolation: str = "linear", out: Any = None) -> Tensor:
    """The q-quantiles of all elements, or along `dim`; NaN where there is a NaN.

    >>> import flambeau
    >>> flambeau.tensor([0.0, 1.0, 2.0]).quantile(0.75)
    tensor(1.5000)
    """
    result = _quantile(input, q, dim, keepdim, interpolation, False)
    return result if out is None else basis.into(out, quantile.op, result)


@composite(method=True)
def nanquantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
                interpolation: str = "linear", out: Any = None) -> Tensor:
    """The q-quantiles of the elements that are not NaN."""
    result = _quantile(input, q, dim, keepdim, interpolation, True)
    return result if out is None else basis.into(out, nanquantile.op, result)


__all__ = ["norm", "quantile", "std", "var", "vector_norm"]
