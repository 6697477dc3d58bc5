"""Variances, norms, covariances and quantiles."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import kernels
from flambeau._support.settings import warn_user
from flambeau.core.modes import grad_enabled
from flambeau.core.promotion import promote, type_name
from flambeau.core.shapes import broadcast_shapes, wrap_dim
from flambeau.core.tensor import Tensor, plain_types, wrap
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.reduction.statistics import updated_mean
from flambeau.kernels.refused import characters, no_kernel, spread_speaker
from flambeau.ops.coercion import values_below
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.indexing.gather import gather
from flambeau.ops.linalg.matmul import matmul
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.pointwise.arithmetic import abs, pow, sgn
from flambeau.ops.pointwise.comparison import isnan, logical_not
from flambeau.ops.pointwise.complex import complex as from_parts
from flambeau.ops.pointwise.complex import conjugated, real_part
from flambeau.ops.pointwise.conditional import clamp, masked_fill, where
from flambeau.ops.pointwise.elementary import sqrt
from flambeau.ops.python.methods import adopt
from flambeau.ops.reduction.minmax import amax, amin, share_ties
from flambeau.ops.reduction.sort import sort
from flambeau.ops.reduction.sums import count, mean, restore, sum
from flambeau.ops.view.conversion import as_floating, cast
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import expand_to, movedim, squeeze, transpose, unsqueeze
from flambeau.schema.errors import type_name as type_name_of

# ---- variance and standard deviation ------------------------------------------------------------


def _var_vjp(grad: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    """grad · 2 (self - mean) / (n - correction)"""
    shape = self._array.shape
    free = count(shape, dim) - (1 if correction is None else correction)
    grad = grad if dim is None else restore(grad, shape, dim, keepdim)
    middle = mean(self) if dim is None else mean(self, dim, True) if shape else self
    centred = self - middle
    return grad * (2 / free if free else float("inf")) * centred


def _std_vjp(grad: Tensor, self: Tensor, result: Tensor, dim: Any, correction: Any,
             keepdim: bool) -> Tensor:
    slope = (grad / (result * 2)).masked_fill_(result == 0, 0)
    return _var_vjp(slope, self, dim, correction, keepdim)


def _mean_vjp(grad: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    shape = self._array.shape
    return expand_to(restore(grad, shape, dim, keepdim), shape) / count(shape, dim)


def _add_mean_grad(spread: Any, grad: Any, self: Tensor, dim: Any, keepdim: bool) -> Any:
    """The gradient through the spread (None if there is none), and that through the mean."""
    if grad[1] is None:
        return (spread,)
    part = _mean_vjp(grad[1], self, dim, keepdim)
    return (part if spread is None else spread + part,)


def _var_mean_vjp(grad: Any, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    spread = None if grad[0] is None else _var_vjp(grad[0], self, dim, correction, keepdim)
    return _add_mean_grad(spread, grad, self, dim, keepdim)


def _std_mean_vjp(grad: Any, self: Tensor, result0: Tensor, dim: Any, correction: Any,
                  keepdim: bool) -> Any:
    spread = None if grad[0] is None else _std_vjp(grad[0], self, result0, dim, correction,
                                                   keepdim)
    return _add_mean_grad(spread, grad, self, dim, keepdim)


def _with_mean(name: str) -> Any:
    kernel = getattr(kernels, name)

    def run(self: np.ndarray, dim: Any, correction: Any, keepdim: bool) -> Any:
        spread, middle = kernel(self, dim, correction, keepdim)
        if self.dtype.kind in "fV" and np.isinf(middle).any():
            middle = updated_mean(self, dim, middle)
        return spread, middle
    return run


def _declare(name: str, doc: str, results: str = "Tensor", **declared: Any) -> Any:
    """The schemas that var, std, var_mean and std_mean share."""
    return op(
        f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
        f"bool keepdim=False) -> {results}",
        same_as=(f"{name}(Tensor self, bool unbiased=True) -> {results}",
                 f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) "
                 f"-> {results}"),
        parameter_names="unbiased=correction", dims="dim",
        kernel=_with_mean(name) if name.endswith("mean") else getattr(kernels, name),
        refuses=(spread_speaker(name), "bBilU8"), doc=doc, **declared)


def _spread_out_type(read: Any, out: Any, found: Any) -> str:
    """PyTorch computes in the type of `out`; that of all elements in the type of the input."""
    self, dim = read[0], read[1] if len(read) > 1 else None
    if dim is None or type(dim) is bool or dim == ():
        return "" if self._array.dtype.itemsize > 2 else "std_var_all: Unsupported dtype {found}"
    if out.is_complex and not self.dtype.is_complex:
        raise no_kernel("std_cpu", out.numpy)
    return ""


var = _declare("var", """The variance of all elements, or along `dim`: the sum of the squared
    distances from the mean over n - correction.

    >>> import flambeau
    >>> flambeau.tensor([1.0, 3.0]).var(), flambeau.tensor([1.0, 3.0]).var(correction=0)
    (tensor(2.), tensor(1.))
    """, d_self=_var_vjp, out="correction dim", out_type=_spread_out_type, overlap="anywhere")
std = _declare("std", "The standard deviation, the square root of `var`.", d_self=_std_vjp,
               out="correction dim", out_type=_spread_out_type, overlap="anywhere")
_PAIR: dict[str, Any] = {"results": "(Tensor, Tensor)", "method": False, "out": False}
var_mean = _declare("var_mean", "The variance and the mean.", vjp=_var_mean_vjp, **_PAIR)
std_mean = _declare("std_mean", "The standard deviation and the mean.", vjp=_std_mean_vjp, **_PAIR)

# ---- norms --------------------------------------------------------------------------------------


def _norm_vjp(grad: Tensor, self: Tensor, result: Tensor, ord: float, dim: Any,
              keepdim: bool) -> Tensor | None:
    """The subgradient that is zero where the norm has none; nothing for a count of elements."""
    if ord == 0:
        return None
    shape = self._array.shape
    g, norm = restore(grad, shape, dim, keepdim), restore(result, shape, dim, keepdim)
    if ord == 1:
        return sgn(self) * g
    if ord == 2:
        if grad_enabled():                  # whose second gradient lies by rows
            return g * masked_fill(self / where(norm == 0, 1, norm), norm == 0, 0)
        slope, zero = self / norm, norm == 0
        if type(slope) in plain_types:
            return g * slope.masked_fill_(zero, 0)
        return g * masked_fill(slope, zero, 0)      # a class may refuse to be written to
    size = abs(self)
    if np.isinf(ord):
        if self._array.dtype.kind == "c":       # the kernel may round |x| in another way
            result = (amax if ord > 0 else amin)(size.detach(), () if dim is None else dim, keepdim)
        return sgn(self) * share_ties(grad, size, result, dim, keepdim)
    zero = size == 0 if 0 < ord < 2 else norm == 0
    slope = pow(where(zero, 1, size) / where(zero, 1, norm), ord - 1)
    return sgn(self) * where(zero, 0, slope) * g


def _check_norm(self: Tensor, ord: Any, dim: Any, *_: Any) -> None:
    if not self.is_floating_point() and not self.is_complex():
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as "
                           f"input. Got {type_name(self.dtype)}")
    if self._array.size or isinstance(ord, complex) or not (ord < 0 or np.isinf(ord)):
        return
    dims = () if dim is None else (dim,) if isinstance(dim, int) else dim
    where = "an empty tensor " if not dims else next(
        (f"the dimension {d}" for d in dims if not self.size(d)), "")
    if where:
        empty = "this dimension is empty and " if dims else ""
        raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on {where}because "
                           f"{empty}the operation does not have an identity")


vector_norm = op(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    kernel=kernels.vector_norm, dims="dim", method=False, out_type=OUT_TYPE, first=_check_norm,
    refuses=("norm_cpu", "8"), d_self=_norm_vjp,
    doc="""(Σ |x|^ord)^(1/ord) over all elements, or along `dim`; ±inf is the extreme |x|, 0 counts.

    >>> import flambeau
    >>> flambeau.linalg.vector_norm(flambeau.tensor([3.0, 4.0]))
    tensor(5.)
    """)


@python_function
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None,
         dtype: Any = None) -> Tensor:
    """The vector norm of order `p` of all elements, or along `dim`; "nuc" is the nuclear norm of
    matrices.

    >>> import flambeau
    >>> flambeau.norm(flambeau.tensor([3.0, -4.0]), p=1)
    tensor(7.)
    """
    if not isinstance(input, Tensor):
        raise AttributeError(f"'{type_name_of(input)}' object has no attribute 'layout'")
    several = isinstance(dim, (tuple, list)) and len(dim) > 2
    if isinstance(p, str) and (p != "fro" or several):
        import flambeau
        dims = tuple(range(input._array.ndim)) if dim is None else (
            (dim,) if isinstance(dim, int) else dim)
        return flambeau.linalg.matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)
    order = 2 if p is None or p == "fro" else p
    if dtype is out is None:
        return vector_norm(input, order, dim, keepdim)
    return vector_norm(input, order, dim, keepdim, dtype=dtype, out=out)


class Norm:
    """What PyTorch too writes in Python."""

    def norm(self, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
             ) -> Tensor:
        """See `flambeau.norm`."""
        return norm(self, p, dim, keepdim, dtype=dtype)


adopt(Norm)


@op("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", method=False)
def frobenius_norm(self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The square root of the sum of squares along `dim`; an older name."""
    if self.dtype.kind not in ("f", "c"):
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{type_name(self.dtype)} instead.")
    if len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    return vector_norm(self, 2, dim, keepdim)


@op("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", method=False)
def nuclear_norm(self: Tensor, keepdim: bool, dim: Any) -> Tensor:
    """The sum of the singular values; an older name of `linalg.matrix_norm(ord="nuc")`."""
    return norm(self, "nuc", dim or (-2, -1), keepdim)


def _dist_kernel(self: np.ndarray, other: np.ndarray, p: Any) -> np.ndarray:
    broadcast_shapes(self.shape, other.shape)
    if self.dtype is not other.dtype:
        self, other = promote(self, other)
    return kernels.vector_norm(kernels.subtract(self, other), p, None, False, None)


def _dist_vjp(grad: Tensor, self: Tensor, other: Tensor, result: Tensor, p: Any) -> Tensor:
    return _norm_vjp(grad, self - other, result, p, None, False)


def _dist_batched(size: int, dims: Any, self: Tensor, other: Tensor, p: Any) -> Any:
    x, y = (movedim(t, d, 0) if d is not None else unsqueeze(t, 0)
            for t, d in zip((self, other), dims))
    while x._array.ndim != y._array.ndim:
        x, y = (x, unsqueeze(y, 1)) if x._array.ndim > y._array.ndim else (unsqueeze(x, 1), y)
    return vector_norm(reshape(x - y, (size, -1)), p, 1), 0


def _dist_speaker(self: np.ndarray, *_: Any) -> str:
    """Who refuses a type: the difference, or its norm."""
    if self.dtype.kind == "b":
        return ("Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
                "`^` or `logical_xor()` operator instead.")
    if self.dtype.char in characters("U8"):
        return "add_stub"
    return "norm(): input dtype should be either floating point or complex. Got {} instead."


dist = op(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", kernel=_dist_kernel, out=False,
    batch=_dist_batched, refuses=(_dist_speaker, "bBilU8"),
    d_self=_dist_vjp,
    d_other=lambda grad, self, other, result, p: -_dist_vjp(grad, self, other, result, p),
    doc="The norm of order `p` of input - other.")


def _renorm_kernel(self: np.ndarray, p: Any, dim: int, maxnorm: Any) -> np.ndarray:
    others = tuple([i for i in range(self.ndim) if i != dim])
    size = kernels.vector_norm(self, p, others, True, None)
    above = kernels.divide(maxnorm, kernels.add(size, 1e-7))
    factor = kernels.where(kernels.greater(size, maxnorm), above, 1)
    return np.ascontiguousarray(kernels.multiply(self, kernels.cast(factor, self.dtype)))


def _check_renorm(self: Tensor, p: Any, dim: Any, maxnorm: Any) -> None:
    for name, number in (("p", p), ("maxnorm", maxnorm)):
        if isinstance(number, complex):
            raise RuntimeError(f"renorm: {name} must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")


def _prepare_renorm(input: Tensor, p: Any, dim: int, maxnorm: Any) -> tuple[Any, ...]:
    _check_renorm(input, p, dim, maxnorm)
    return input, p, wrap_dim(dim, input.ndim), maxnorm


def _renorm_batched(size: int, dims: Any, self: Tensor, p: Any, dim: int, maxnorm: Any) -> Any:
    x = movedim(self, dims[0], 0)
    others = tuple([i for i in range(1, x._array.ndim) if i != dim + 1])
    norm_of = vector_norm(x, p, others, True)
    return x * where(norm_of > maxnorm, maxnorm / (norm_of + 1e-7), 1), 0


def _renorm_vjp(grad: Tensor, self: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """Of x · m / (‖x‖ + ε) where the norm is above m."""
    others = tuple([i for i in range(self._array.ndim) if i != dim])
    size = vector_norm(self, p, others, True)
    through = sum(grad * conjugated(self), others, True)
    through = real_part(through) if through.is_complex() else through
    slope = _norm_vjp(through, self, size, float(p), others, True)
    inverse = 1 / (size + 1e-7)
    return where(size > maxnorm, maxnorm * inverse * (grad - inverse * slope), grad)


renorm = op(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", kernel=_renorm_kernel,
    dims="dim",
    out_type=OUT_TYPE, overlap="element", shape="self", inplace=True, canonical=_prepare_renorm,
    batch=_renorm_batched, d_self=_renorm_vjp,
    doc="""The slices along `dim`, scaled down to norm `maxnorm` where their norm of order `p` is
    larger.""")


# ---- covariance ---------------------------------------------------------------------------------


@op("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> "
    "Tensor", out=False)
def cov(input: Tensor, correction: int = 1, fweights: Tensor | None = None,
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
        total, middle = n, mean(as_floating(rows), 1, True)
    else:
        total = sum(weights)
        middle = sum(rows * weights, 1, True) / total
    free = total - correction
    if aweights is not None and correction != 0:
        free = total - correction * sum(weights * aweights) / total
    if not isinstance(free, Tensor) or (free._array.size == 1 and not isinstance(free, int)):
        value = values_below(free) if isinstance(free, Tensor) else np.asarray(free)
        if (value <= 0).any():
            warn_user("cov(): degrees of freedom is <= 0. Correction should be strictly less than "
                      "the number of observations.")
        free = clamp(free, min=0) if isinstance(free, Tensor) else max(free, 0)
    centred = rows - middle
    weighted = centred if weights is None else centred * weights
    product = matmul(centred, conjugated(weighted.t()))
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


@op("corrcoef(Tensor self) -> Tensor", out=False)
def corrcoef(input: Tensor) -> Tensor:
    """The matrix of correlations of the variables in the rows of `input`."""
    if input._array.ndim > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an "
                           f"input with {input._array.ndim} dimensions")
    matrix = cov(input)
    if not matrix._array.ndim:
        return matrix / matrix
    scale = sqrt(real_part(matrix.diagonal()))
    matrix = matrix / unsqueeze(scale, 1) / scale
    if not matrix.is_complex():
        return clamp(matrix, -1, 1)
    return from_parts(*[clamp(part, -1, 1) for part in (matrix.real, matrix.imag)])


# ---- quantiles ----------------------------------------------------------------------------------


def _quantile(input: Tensor, q: Any, dim: int | None, keepdim: bool,
              interpolation: str, skip_nan: bool) -> Tensor:
    if not isinstance(q, Tensor) and not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError("quantile() interpolation must be one of linear, lower, higher, "
                           f"midpoint or nearest, but got {interpolation}")
    if not input._array.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if isinstance(q, Tensor) and q._array.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if input._array.dtype.name not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    shape, ndim = [*input._array.shape], input._array.ndim
    dim = None if dim is None else wrap_dim(dim, ndim)
    q = _quantile_points(input, q)
    if dim is None:
        ordered = sort(reshape(input, (-1,)))[0]
        kept = [1] * ndim
    else:
        ordered = sort(input if dim >= ndim - 1 else transpose(unsqueeze(input, -1), dim, -1))[0]
        kept = [*shape[:dim], 1, *shape[dim + 1:]] if ndim else []
    rest = kept if keepdim else [] if dim is None or not ndim else shape[:dim] + shape[dim + 1:]
    size = ordered._array.shape[dim if dim is not None and dim >= ndim - 1 else -1] \
        if ordered._array.ndim else 1
    result = _quantiles_of_sorted(ordered.view((*rest, size)), q, interpolation, skip_nan)
    if q._array.ndim:
        result.unsqueeze_(0).transpose_(0, -1)
    return result.squeeze_(-1)


def _quantiles_of_sorted(ordered: Tensor, q: Tensor, interpolation: str, skip_nan: bool) -> Tensor:
    """The quantiles of each row, in its place."""
    size = ordered._array.shape[-1]
    if skip_nan:
        usable = sum(logical_not(isnan(ordered)), -1, True)
        ranks = clamp(q * (usable - 1), min=0)
    else:
        ranks = masked_fill(q * (size - 1) + zeros_like(ordered.narrow(-1, 0, 1)),
                            isnan(ordered).any(-1, True), size - 1)
    return _interpolate_ranks(ordered, cast(ranks, ordered._array.dtype), interpolation)


def _quantile_points(input: Tensor, q: Any) -> Tensor:
    if not isinstance(q, Tensor):
        return wrap(np.asarray(q, input._array.dtype))
    if q.dtype is not input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not ((q._array >= 0) & (q._array <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def _interpolate_ranks(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """The elements at fractional positions along the last dimension."""
    import flambeau
    whole = {"lower": flambeau.floor, "higher": flambeau.ceil, "nearest": flambeau.round}
    if interpolation in whole:
        return gather(ordered, -1, whole[interpolation](ranks).long())
    below, above = flambeau.floor(ranks), flambeau.ceil(ranks)
    weight = ranks - below if interpolation == "linear" else zeros_like(ranks) + 0.5
    if interpolation == "midpoint":
        weight = where(above == below, 0, weight)
    return gather(ordered, -1, below.long()).lerp_(gather(ordered, -1, above.long()), weight)


def _declare_q(name: str, skip_nan: bool, doc: str) -> Any:
    rest = 'int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor'

    def body(self: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
        return _quantile(self, q, dim, keepdim, interpolation, skip_nan)
    return op(f"{name}(Tensor self, Tensor q, {rest}",
              f"{name}.scalar(Tensor self, float q, {rest}", body=body, doc=doc,
              out_type="quantile() out tensor must be same dtype as the input tensor",
              out_device=f"{name}() out tensor must be on the same device as the input tensor",
              out_reported_as=None, autocast="full")


quantile = _declare_q("quantile", False, """The q-quantiles of all elements, or along `dim`; NaN
    where there is a NaN.

    >>> import flambeau
    >>> flambeau.tensor([0.0, 1.0, 2.0]).quantile(0.75)
    tensor(1.5000)
    """)
nanquantile = _declare_q("nanquantile", True, "The q-quantiles of the elements that are not NaN.")


__all__ = ["norm", "quantile", "std", "var", "vector_norm"]
