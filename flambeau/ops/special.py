"""Special functions: gamma, Bessel, error functions and their kin.

Where PyTorch has no derivative (Bessel functions of the second kind, Airy, orthogonal polynomials)
there is one here.
"""
from __future__ import annotations

from math import comb, pi, sqrt
from math import log as number_log
from typing import Any

import numpy as np

from flambeau import kernels, return_types
from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING
from flambeau.core.op import checked_arguments, composite, pointwise, primitive, public, unsupported
from flambeau.core.promotion import convert, type_name
from flambeau.core.tensor import Tensor, basis
from flambeau.kernels import parameter_slopes
from flambeau.kernels import special as kernel
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import check_tensors
from flambeau.ops.conditional import where
from flambeau.ops.create import full_like
from flambeau.ops.elementary import cos, exp, log, log1p, sigmoid
from flambeau.ops.node_names import number_nodes, one_node
from flambeau.ops.pointwise import mul, neg, pow, reciprocal, sgn, together
from flambeau.ops.softmax import log_softmax, softmax

_HERE = {"floating": True, "namespace": "special", "method": False, "inplace": False}
_BOTH = {"floating": True, "namespace": ("torch", "special")}


def _as_floating(input: Tensor) -> Tensor:
    if input._array.dtype in FLOATING:
        return input
    return basis.cast(input, dtypes.default_float())


# ---- the gamma function -------------------------------------------------------------------------

lgamma = pointwise("lgamma", kernels.lgamma, floating=True, d=lambda self: digamma(self),
                   doc="The logarithm of |Γ(input)|.")
digamma = pointwise("digamma", kernels.digamma, **_BOTH, d=lambda self: _polygamma(self, 1),
                    doc="The derivative of lgamma, ψ = Γ' / Γ.")


@primitive(lambda self, n: kernel.polygamma(n, self), kind="pointwise", method=False,
           namespace=None, name="polygamma_of", node_name="PolygammaBackward0",
           d_self=lambda self, n: _polygamma(self, n + 1))
def _polygamma(input: Tensor, n: int) -> Any:
    return _as_floating(input), n


@composite(namespace=("torch", "special"))
def polygamma(n: int, input: Tensor, *, out: Any = None) -> Tensor:
    """The n-th derivative of digamma.

    >>> import flambeau
    >>> flambeau.polygamma(1, flambeau.tensor([1.0]))
    tensor([1.6449])
    """
    if isinstance(n, (float, Tensor)) or not hasattr(n, "__index__"):
        raise TypeError("polygamma(): argument 'n' (position 1) must be int, not "
                        f"{type(n).__name__}")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if input._array.dtype.kind == "c" and n:
        kernel = "trigamma" if n == 1 else "polygamma"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(input.dtype)}'")
    result = digamma(input) if n == 0 else _polygamma(input, n)
    return result if out is None else basis.into(out, polygamma.op, result, (input,))


Tensor.polygamma = checked_arguments(lambda self, n: polygamma(n, self), name="polygamma")


@composite(namespace=None, inplace=True, name="polygamma_last")
def _polygamma_last(input: Tensor, n: int) -> Tensor:
    return polygamma(n, input)


Tensor.polygamma_ = checked_arguments(
    lambda self, n: _polygamma_last.op.inplace_op.function(self, n), name="polygamma_")


@composite(method=True, inplace=True)
@one_node
def mvlgamma(input: Tensor, p: int, *, out: Any = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p:
    p (p - 1) / 4 · log π + Σ_j lgamma(input - j / 2), j = 0 … p - 1."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input._array.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    input = _as_floating(input)
    result: Any = p * (p - 1) / 4 * number_log(pi)
    for j in range(p):
        result = lgamma(input - j / 2) + result
    return result if out is None else basis.into(out, mvlgamma.op, result)


def _gamma_density(self: Tensor, other: Tensor) -> Tensor:
    """The slope of igamma in its second argument."""
    return exp((self - 1) * log(other) - other - lgamma(self))


def _density_slope(self: Tensor, other: Tensor, n: int) -> Tensor:
    """The n-th derivative of that density by `self`, relative to it: with a density a · h(a),
    that of the product, whose second factor's logarithm has polygammas of a + 1 as derivatives."""
    above = self + 1
    cumulants = [log(other) - digamma(above), *[neg(polygamma(k, above)) for k in range(1, n)]]
    moments: list[Any] = [1]
    for m in range(1, n + 1):
        terms = [cumulants[k - 1] * moments[m - k] * comb(m - 1, k - 1) for k in range(1, m + 1)]
        moments.append(sum(terms[1:], terms[0]))
    return moments[n] + n * moments[n - 1] / self


def _gamma_slope_by_self(self: Tensor, other: Tensor, result: Tensor, n: int,
                         relative: bool) -> Tensor:
    further = _gamma_slope(self, other, n + 1, relative)
    return further - result * (log(other) - digamma(self)) if relative else further


def _gamma_slope_by_other(self: Tensor, other: Tensor, result: Tensor, n: int,
                          relative: bool) -> Tensor:
    factor = _density_slope(self, other, n)
    return factor - result * ((self - 1) / other - 1) if relative \
        else _gamma_density(self, other) * factor


@primitive(parameter_slopes.gamma_slope, tensors=("self", "other"), params=("n", "relative"),
           kind="pointwise", namespace=None, method=False, node_name="IgammaSlopeBackward0",
           d_self=_gamma_slope_by_self, d_other=_gamma_slope_by_other)
def _gamma_slope(input: Tensor, other: Tensor, n: int = 1, relative: bool = False) -> Any:
    """The n-th derivative of igamma by its first argument, or that over the one by its second."""
    return *together(input, other), n, relative


@composite
def _standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """How gamma samples `output` move with their shapes `input`."""
    return neg(_gamma_slope(input, output, 1, True))


igamma = pointwise("igamma", kernel.gammainc, numbers="", d_other=_gamma_density,
                   d_self=lambda self, other: _gamma_slope(self, other),
                   doc="The regularised lower incomplete gamma function P(input, other).")
igammac = pointwise("igammac", kernel.gammaincc, numbers="",
                    d_self=lambda self, other: neg(_gamma_slope(self, other)),
                    d_other=lambda self, other: neg(_gamma_density(self, other)),
                    doc="The regularised upper incomplete gamma function Q(input, other).")
def _forward_in_second(slope: Any) -> Any:
    """The rule of forward mode that PyTorch has: it refuses tangents of the first argument."""
    def rule(tangents: Any, self: Tensor, other: Tensor) -> Tensor:
        if tangents[0] is not None:
            raise NotImplementedError("the derivative by the first argument is for reverse mode")
        return tangents[1] * slope(self, other)
    return rule


igamma.op.jvp_rule = _forward_in_second(igamma.op.rules["other"])
igammac.op.jvp_rule = _forward_in_second(igammac.op.rules["other"])
zeta = pointwise("zeta", kernel.zeta, **_HERE, numbers="any", node_name="SpecialZetaBackward0",
                 d_self=lambda self, other: _zeta_slope(self, other),
                 d_other=lambda self, other: zeta(self + 1, other) * neg(self)
                 if isinstance(self, Tensor) else zeta(self + 1, other) * -self,
                 doc="The Hurwitz zeta function Σ (k + other)^-input, k = 0, 1, ….")


def _zeta_slope_by_other(self: Tensor, other: Tensor, n: int) -> Tensor:
    """The n-th derivative, by s, of -s ζ(s + 1, q)."""
    above = self + 1
    before = zeta(above, other) if n == 1 else _zeta_slope(above, other, n - 1)
    return neg(self * _zeta_slope(above, other, n) + n * before)


@primitive(parameter_slopes.zeta_slope, tensors=("self", "other"), params=("n",),
           kind="pointwise", namespace=None, method=False, node_name="ZetaSlopeBackward0",
           d_self=lambda self, other, n: _zeta_slope(self, other, n + 1),
           d_other=_zeta_slope_by_other)
def _zeta_slope(input: Tensor, other: Any, n: int = 1) -> Any:
    """The n-th derivative of zeta by its first argument."""
    if not isinstance(other, Tensor):
        other = full_like(input, other)
    return *together(input, other), n


# ---- Bessel functions ---------------------------------------------------------------------------


def _over(numerator: Tensor, self: Tensor) -> Tensor:
    """numerator / self for odd functions of slope 1/2 at 0."""
    zero = self == 0
    return where(zero, 0.5, numerator / where(zero, 1, self))


i0 = pointwise("i0", kernel.i0, **_BOTH, d=lambda self: i1(self),
               doc="The modified Bessel function of the first kind of order 0.")
i0e = pointwise("i0e", kernel.i0e, **_HERE, node_name="SpecialI0EBackward0",
                d=lambda self, result: i1e(self) - sgn(self) * result, doc="exp(-|input|) · i0.")
i1 = pointwise("i1", kernel.i1, **_HERE, node_name="SpecialI1Backward0",
               d=lambda self, result: i0(self) - _over(result, self),
               doc="The modified Bessel function of the first kind of order 1.")
i1e = pointwise("i1e", kernel.i1e, **_HERE, node_name="SpecialI1EBackward0",
                d=lambda self, result: i0e(self) - sgn(self) * result - _over(result, self),
                doc="exp(-|input|) · i1.")
bessel_j0 = pointwise("bessel_j0", kernel.j0, **_HERE, d=lambda self: neg(bessel_j1(self)),
                      doc="The Bessel function of the first kind of order 0.")
bessel_j1 = pointwise("bessel_j1", kernel.j1, **_HERE,
                      d=lambda self, result: bessel_j0(self) - _over(result, self),
                      doc="The Bessel function of the first kind of order 1.")
bessel_y0 = pointwise("bessel_y0", kernel.y0, **_HERE, d=lambda self: neg(bessel_y1(self)),
                      doc="The Bessel function of the second kind of order 0.")
bessel_y1 = pointwise("bessel_y1", kernel.y1, **_HERE,
                      d=lambda self, result: bessel_y0(self) - result / self,
                      doc="The Bessel function of the second kind of order 1.")
modified_bessel_i0 = pointwise("modified_bessel_i0", kernel.modified_i0, **_HERE,
                               d=lambda self: i1(self),
                               doc="The modified Bessel function of the first kind of order 0.")
modified_bessel_i1 = pointwise(
    "modified_bessel_i1", kernel.modified_i1, **_HERE,
    d=lambda self, result: i0(self) - _over(result, self),
    doc="The modified Bessel function of the first kind of order 1.")
modified_bessel_k0 = pointwise(
    "modified_bessel_k0", kernel.k0, **_HERE, d=lambda self: neg(modified_bessel_k1(self)),
    doc="The modified Bessel function of the second kind of order 0.")
modified_bessel_k1 = pointwise(
    "modified_bessel_k1", kernel.k1, **_HERE,
    d=lambda self, result: neg(modified_bessel_k0(self)) - result / self,
    doc="The modified Bessel function of the second kind of order 1.")
scaled_modified_bessel_k0 = pointwise(
    "scaled_modified_bessel_k0", kernel.k0e, **_HERE,
    d=lambda self, result: result - scaled_modified_bessel_k1(self),
    doc="exp(input) · modified_bessel_k0.")
scaled_modified_bessel_k1 = pointwise(
    "scaled_modified_bessel_k1", kernel.k1e, **_HERE,
    d=lambda self, result: result - result / self - scaled_modified_bessel_k0(self),
    doc="exp(input) · modified_bessel_k1.")


def _spherical_slope(self: Tensor, result: Tensor) -> Tensor:
    zero = self == 0
    return where(zero, 0, (cos(self) - result) / where(zero, 1, self))


spherical_bessel_j0 = pointwise("spherical_bessel_j0", kernel.spherical_j0, **_HERE,
                                d=_spherical_slope, doc="sin(input) / input.")
airy_ai = pointwise("airy_ai", kernel.airy_ai, **_HERE, d=lambda self: _airy_prime(self),
                    doc="The Airy function Ai, which solves f'' = x f.")
_airy_prime = pointwise("airy_ai_prime", kernel.airy_ai_prime, floating=True, namespace=None,
                        method=False, inplace=False, d=lambda self: self * airy_ai(self))

# ---- the normal distribution --------------------------------------------------------------------

erfcx = pointwise("erfcx", kernel.erfcx, **_HERE, node_name="SpecialErfcxBackward0",
                  d=lambda self, result: 2 * self * result - 2 / sqrt(pi),
                  doc="exp(input²) · erfc(input).")
ndtr = pointwise("ndtr", kernel.ndtr, **_HERE, node_name="SpecialNdtrBackward0",
                 d=lambda self: exp(self * self * -0.5) / sqrt(2 * pi),
                 doc="The area under the standard normal density left of the input.")
ndtri = pointwise("ndtri", kernel.ndtri, **_HERE, node_name="SpecialNdtriBackward0",
                  d=lambda result: exp(result * result * 0.5) * sqrt(2 * pi),
                  doc="The inverse of ndtr, on (0, 1).")
log_ndtr = pointwise("log_ndtr", kernel.log_ndtr, **_HERE, node_name="SpecialLogNdtrBackward0",
                     d=lambda self: sqrt(2 / pi) * reciprocal(erfcx(self * -sqrt(0.5))),
                     doc="The logarithm of ndtr, exact also where that is small.")
entr = pointwise("entr", kernel.entr, **_HERE, node_name="SpecialEntrBackward0",
                 d=lambda self: neg(log(self) + 1), doc="-input · log(input), 0 at 0.")

# ---- logarithms ---------------------------------------------------------------------------------


def _unless_zero(self: Any, other: Any, pole: float, value: Any) -> Any:
    """`value`, a logarithm of `other`; but 0 where `other` is at its pole and `self` is 0."""
    if isinstance(other, Tensor):
        return where((other <= pole) & (self == 0), 0, value)
    return where(self == 0, 0, value) if other <= pole else value


xlogy = pointwise("xlogy", kernel.xlogy, **_BOTH, numbers="any",
                  d_other=lambda self, other: self / other,
                  d_self=lambda self, other: _unless_zero(
                      self, other, 0, (log if isinstance(other, Tensor) else _number_log)(other)),
                  doc="input · log(other), 0 where the input is 0.")
xlog1py = pointwise("xlog1py", kernel.xlog1py, **_HERE, numbers="any",
                    node_name="SpecialXlog1PyBackward0",
                    d_other=lambda self, other: self / (other + 1),
                    d_self=lambda self, other: _unless_zero(
                        self, other, -1,
                        log1p(other) if isinstance(other, Tensor) else _number_log(other + 1)),
                    doc="input · log(1 + other), 0 where the input is 0.")

xlogy = number_nodes(xlogy.op, "XlogyBackward2", "XlogyBackward1")
xlog1py = number_nodes(xlog1py.op, "SpecialXlog1PyBackward2", "SpecialXlog1PyBackward1")


def _number_log(value: Any) -> float:
    return number_log(value) if value > 0 else -float("inf") if value == 0 else float("nan")


logaddexp = pointwise("logaddexp", kernels.logaddexp, inplace=False, numbers="",
                      d_self=lambda self, other: sigmoid(self - other),
                      d_other=lambda self, other: sigmoid(other - self),
                      doc="log(exp(input) + exp(other)), computed without overflow.")
logaddexp2 = pointwise("logaddexp2", kernels.logaddexp2, inplace=False, numbers="",
                       d_self=lambda self, other: sigmoid((self - other) * number_log(2)),
                       d_other=lambda self, other: sigmoid((other - self) * number_log(2)),
                       doc="log2(2^input + 2^other), computed without overflow.")


def _logit_slope(self: Tensor, eps: float) -> Tensor:
    low, high = (eps, 1 - eps) if eps >= 0 else (0, 1)
    outside = (self < low) | (self > high)
    return where(outside, 0 if eps >= 0 else float("nan"), reciprocal(self * (1 - self)))


@primitive(lambda self, eps: kernel.logit(self, eps), kind="pointwise", inplace=True,
           namespace=("torch", "special"), d_self=_logit_slope)
def logit(input: Tensor, eps: float | None = None) -> Any:
    """log(p / (1 - p)) of probabilities, first brought into [eps, 1 - eps] if `eps` is given.

    >>> import flambeau
    >>> flambeau.logit(flambeau.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    if input._array.dtype.kind in "cW":
        raise unsupported(logit.op, input._array)
    return _as_floating(input), -1.0 if eps is None else eps


logit.op.saved_as = {"eps": lambda eps: None if eps < 0 else eps}

def _sinc_slope(self: Tensor, result: Tensor) -> Tensor:
    zero = self == 0
    return where(zero, 0, (cos(self * pi) - result) / where(zero, 1, self))


sinc = pointwise("sinc", kernel.sinc, **_BOTH, d=_sinc_slope, doc="sin(πx) / (πx), 1 at 0.")

# ---- parts of floating-point numbers ------------------------------------------------------------


def _frexp(self: np.ndarray) -> Any:
    wide = kernels.cast(self, np.float32) if self.dtype.itemsize < 4 else self
    mantissa, exponent = np.frexp(wide)
    return convert(np.asarray(mantissa), self.dtype), np.asarray(exponent, np.int32)


@primitive(_frexp, returns=return_types.frexp, differentiable=(True, False), core="()->(),()",
           batch=lambda size, dims, self: (frexp(self), (dims[0], dims[0])),
           vjp=lambda grad, result1: (grad[0] / pow(2.0, result1),),
           jvp=lambda self_t, result1: (self_t / pow(2.0, result1), None))
def frexp(input: Tensor) -> Any:
    """The mantissa in [1/2, 1) and the exponent: input = mantissa · 2^exponent."""
    if input._array.dtype not in FLOATING or input._array.dtype.kind in "cW":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return (input,)


def _scaled_by_powers(input: Tensor, exponent: Tensor) -> Tensor:
    """input · 2^exponent for integers, also where 2^exponent itself would overflow or vanish: in
    double precision, of which all powers that matter to other types are numbers, or in two steps.
    """
    own, wide = input._array.dtype, np.dtype(np.float64)
    if exponent._array.itemsize > 1:
        exponent = exponent.clamp(-2046, 2046)
    if own.itemsize < 8 and own.kind != "c":
        return basis.cast(mul(basis.cast(input, wide), pow(2.0, basis.cast(exponent, wide))), own)
    half = exponent.div(2, rounding_mode="floor")
    return mul(mul(input, pow(2.0, basis.cast(half, wide))),
               pow(2.0, basis.cast(exponent - half, wide)))


@composite(method=True, inplace=True)
@one_node
def ldexp(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """input · 2^other."""
    check_tensors("ldexp", input=input, other=other)
    if input._array.dtype.kind == "f":
        refuse(other._array, "b", "ldexp_cpu_exp")
    result = _scaled_by_powers(input, other) if other._array.dtype.kind in "iu" \
        and input._array.dtype in FLOATING else mul(input, pow(2.0, other))
    return result if out is None else basis.into(out, ldexp.op, result, (input, other))


_step = pointwise("heaviside_of", kernels.heaviside, d_self=0, method=False, namespace=None,
                  inplace=False, numbers="", d_other=lambda self: self == 0,
                  node_name="HeavisideBackward0")


@composite(method=True, inplace=True)
def heaviside(input: Tensor, values: Tensor, *, out: Any = None) -> Tensor:
    """0 where the input is negative, 1 where it is positive, `values` where it is zero."""
    check_tensors("heaviside", input=input, values=values)
    if input._array.dtype.kind in "cW" or values._array.dtype.kind in "cW":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if not input.dtype is values.dtype is (values if out is None else out).dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    result = _step(input, values)
    return result if out is None else basis.into(out, heaviside.op, result, (input, values))


public["special"] |= {"expit": sigmoid, "gammaln": lgamma, "psi": digamma, "gammainc": igamma,
                      "gammaincc": igammac, "multigammaln": mvlgamma, "softmax": softmax,
                      "log_softmax": log_softmax}
for _function in (i0, lgamma):
    _function.op.refusal = {"": f"{_function.op.name}_vml_cpu"}
digamma.op.refusal = {"": "digamma"}
__all__ = ["digamma", "lgamma", "logit", "sinc", "xlogy"]
