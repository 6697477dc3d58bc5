"""Special functions: gamma, Bessel, error functions and their kin.

Where PyTorch has no derivative (Bessel functions of the second kind, Airy, orthogonal polynomials)
there is one here.
"""
from __future__ import annotations

from math import comb, pi, sqrt
from math import log as number_log
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core import dtypes
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.pointwise import pointwise
from flambeau.kernels.pointwise import parameter_slopes
from flambeau.kernels.pointwise import special as kernel
from flambeau.kernels.refused import refuse
from flambeau.ops.nn.softmax import log_softmax, softmax
from flambeau.ops.node_names import one_node
from flambeau.ops.pointwise.arithmetic import mul, neg, pow, reciprocal, sgn
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.pointwise.elementary import cos, exp, log, log1p, sigmoid
from flambeau.ops.view.conversion import as_floating, cast, contiguous

_REAL = "cW8"           # kinds of elements that these functions do not take: complex ones, float8
_WIDE = "e" + _REAL     # … nor half types


# ---- the gamma function -------------------------------------------------------------------------

lgamma = pointwise("lgamma(Tensor self)", kernel=kernels.lgamma, floating=True,
                   aliases=("special_gammaln(Tensor self) -> Tensor",),
                   refuses=("lgamma_vml_cpu", _REAL), d=lambda self: digamma(self),
                   doc="The logarithm of |Γ(input)|.")
digamma = pointwise("digamma(Tensor self)", kernel=kernels.digamma, floating=True,
                    aliases=("special_digamma(Tensor self) -> Tensor",
                             "special_psi(Tensor self) -> Tensor"),
                    refuses=("digamma", _REAL), d=lambda self: polygamma(1, self),
                    doc="The derivative of lgamma, ψ = Γ' / Γ.")


def _polygamma_kernel(self: np.ndarray, n: int) -> np.ndarray:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    refuse(self, _REAL, ("digamma", "trigamma", "polygamma")[min(n, 2)])
    return kernel.polygamma(self, n)


polygamma = pointwise(
    "polygamma(int n, Tensor self)", kernel=_polygamma_kernel, floating=True,
    aliases=("special_polygamma(int n, Tensor self) -> Tensor",),
    inplace_node="PolygammaBackward1", d=lambda self, n: polygamma(n + 1, self),
    doc="""The n-th derivative of digamma.

    >>> import flambeau
    >>> flambeau.polygamma(1, flambeau.tensor([1.0]))
    tensor([1.6449])
    """)


def _check_mvlgamma(self: Tensor, p: int) -> None:
    if self._array.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    refuse(self._array, "cW8", "arange_cpu")


def _check_written_mvlgamma(self: Tensor, p: int) -> None:
    _check_mvlgamma(self, p)
    if self._array.dtype not in FLOATING:
        found = dtypes.from_numpy_dtype(dtypes.default_float())
        raise RuntimeError(f"mvlgamma: result type {type_name(self.dtype)} can't be cast to the "
                           f"desired output type {type_name(found)}")


@op("mvlgamma(Tensor self, int p) -> Tensor", inplace=True, inplace_first=_check_written_mvlgamma,
    out_cast=lambda read, out, found: f"mvlgamma: result type {type_name(read[0].dtype)} can't be "
    "cast to the desired output type {found}",
    aliases=("special_multigammaln(Tensor self, int p) -> Tensor",))
@one_node
def mvlgamma(self: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p:
    p (p - 1) / 4 · log π + Σ_j lgamma(input - j / 2), j = 0 … p - 1."""
    _check_mvlgamma(self, p)
    x = as_floating(self)
    result: Any = p * (p - 1) / 4 * number_log(pi)
    for j in range(p):
        result = lgamma(x - j / 2) + result
    return contiguous(result)                           # a sum along a dimension lies by rows


def _gamma_density(self: Tensor, other: Tensor) -> Tensor:
    """The slope of igamma in its second argument."""
    return exp((self - 1) * log(other) - other - lgamma(self))


def _density_derivative(self: Tensor, other: Tensor, n: int) -> Tensor:
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
    factor = _density_derivative(self, other, n)
    return factor - result * ((self - 1) / other - 1) if relative \
        else _gamma_density(self, other) * factor


_PART: dict[str, Any] = {"function": False, "method": False, "inplace": False, "out": False}
_gamma_slope = pointwise(
    "_gamma_slope(Tensor self, Tensor other, int n=1, bool relative=False)",
    kernel=parameter_slopes.gamma_slope, node="IgammaSlopeBackward0", **_PART,
    d_self=_gamma_slope_by_self, d_other=_gamma_slope_by_other,
    doc="The n-th derivative of igamma by its first argument, or that over the one by its second.")


@op("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", out=False, method=False)
def _standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    """How gamma samples `output` move with their shapes `input`."""
    return neg(_gamma_slope(self, output, 1, True))


def _forward_in_second(slope: Any) -> Any:
    """The rule of forward mode that PyTorch has: it refuses tangents of the first argument."""
    def rule(tangents: Any, self: Tensor, other: Tensor) -> Tensor:
        if tangents[0] is not None:
            raise NotImplementedError("the derivative by the first argument is for reverse mode")
        return tangents[1] * slope(self, other)
    return rule


igamma = pointwise("igamma(Tensor self, Tensor other)", kernel=kernel.gammainc,
                   aliases=("special_gammainc(Tensor self, Tensor other) -> Tensor",),
                   jvp=_forward_in_second(_gamma_density), d_other=_gamma_density,
                   d_self=lambda self, other: _gamma_slope(self, other),
                   doc="The regularised lower incomplete gamma function P(input, other).")
igammac = pointwise("igammac(Tensor self, Tensor other)", kernel=kernel.gammaincc,
                    aliases=("special_gammaincc(Tensor self, Tensor other) -> Tensor",),
                    jvp=_forward_in_second(lambda self, other: neg(_gamma_density(self, other))),
                    d_self=lambda self, other: neg(_gamma_slope(self, other)),
                    d_other=lambda self, other: neg(_gamma_density(self, other)),
                    doc="The regularised upper incomplete gamma function Q(input, other).")
zeta = pointwise("special_zeta(Tensor self, Tensor other)",
                 "special_zeta.self_scalar(Scalar self, Tensor other)",
                 "special_zeta.other_scalar(Tensor self, Scalar other)", kernel=kernel.zeta,
                 floating=True, inplace=False, node="SpecialZetaBackward0",
                 d_self=lambda self, other: _zeta_slope(self, other),
                 d_other=lambda self, other: zeta(self + 1, other) * neg(self)
                 if isinstance(self, Tensor) else zeta(self + 1, other) * -self,
                 doc="The Hurwitz zeta function Σ (k + other)^-input, k = 0, 1, ….")


def _zeta_slope_by_other(self: Tensor, other: Tensor, n: int) -> Tensor:
    """The n-th derivative, by s, of -s ζ(s + 1, q)."""
    above = self + 1
    before = zeta(above, other) if n == 1 else _zeta_slope(above, other, n - 1)
    return neg(self * _zeta_slope(above, other, n) + n * before)


_zeta_slope = pointwise(
    "_zeta_slope(Tensor self, Tensor other, int n=1)", kernel=parameter_slopes.zeta_slope,
    numbers=True, node="ZetaSlopeBackward0", **_PART,
    d_self=lambda self, other, n: _zeta_slope(self, other, n + 1), d_other=_zeta_slope_by_other,
    doc="The n-th derivative of zeta by its first argument.")


# ---- Bessel functions ---------------------------------------------------------------------------


def _over(numerator: Tensor, self: Tensor) -> Tensor:
    """numerator / self for odd functions of slope 1/2 at 0."""
    zero = self == 0
    return where(zero, 0.5, numerator / where(zero, 1, self))


i0 = pointwise("i0(Tensor self)", kernel=kernel.i0, floating=True, refuses=("i0_vml_cpu", "c"),
               aliases=("special_i0(Tensor self) -> Tensor",), d=lambda self: i1(self),
               doc="The modified Bessel function of the first kind of order 0.")
i0e = pointwise("special_i0e(Tensor self)", kernel=kernel.i0e, floating=True, inplace=False,
                node="SpecialI0EBackward0",
                d=lambda self, result: i1e(self) - sgn(self) * result, doc="exp(-|input|) · i0.")
i1 = pointwise("special_i1(Tensor self)", kernel=kernel.i1, floating=True, inplace=False,
               node="SpecialI1Backward0",
               d=lambda self, result: i0(self) - _over(result, self),
               doc="The modified Bessel function of the first kind of order 1.")
i1e = pointwise("special_i1e(Tensor self)", kernel=kernel.i1e, floating=True, inplace=False,
                node="SpecialI1EBackward0",
                d=lambda self, result: i0e(self) - sgn(self) * result - _over(result, self),
                doc="exp(-|input|) · i1.")
bessel_j0 = pointwise("special_bessel_j0(Tensor self)", kernel=kernel.j0, floating=True,
                      inplace=False, d=lambda self: neg(bessel_j1(self)),
                      out_reported_as=False,
                      doc="The Bessel function of the first kind of order 0.")
bessel_j1 = pointwise("special_bessel_j1(Tensor self)", kernel=kernel.j1, floating=True,
                      inplace=False,
                      d=lambda self, result: bessel_j0(self) - _over(result, self),
                      out_reported_as=False,
                      doc="The Bessel function of the first kind of order 1.")
bessel_y0 = pointwise("special_bessel_y0(Tensor self)", kernel=kernel.y0, floating=True,
                      inplace=False, d=lambda self: neg(bessel_y1(self)),
                      out_reported_as=False,
                      doc="The Bessel function of the second kind of order 0.")
bessel_y1 = pointwise("special_bessel_y1(Tensor self)", kernel=kernel.y1, floating=True,
                      inplace=False,
                      d=lambda self, result: bessel_y0(self) - result / self,
                      out_reported_as=False,
                      doc="The Bessel function of the second kind of order 1.")
modified_bessel_i0 = pointwise("special_modified_bessel_i0(Tensor self)",
                               kernel=kernel.modified_i0, floating=True, inplace=False,
                               d=lambda self: i1(self),
                               out_reported_as=False,
                               doc="The modified Bessel function of the first kind of order 0.")
modified_bessel_i1 = pointwise(
    "special_modified_bessel_i1(Tensor self)", kernel=kernel.modified_i1, floating=True,
    inplace=False,
    d=lambda self, result: i0(self) - _over(result, self),
    out_reported_as=False, doc="The modified Bessel function of the first kind of order 1.")
modified_bessel_k0 = pointwise(
    "special_modified_bessel_k0(Tensor self)", kernel=kernel.k0, floating=True, inplace=False,
    d=lambda self: neg(modified_bessel_k1(self)),
    out_reported_as=False, doc="The modified Bessel function of the second kind of order 0.")
modified_bessel_k1 = pointwise(
    "special_modified_bessel_k1(Tensor self)", kernel=kernel.k1, floating=True, inplace=False,
    d=lambda self, result: neg(modified_bessel_k0(self)) - result / self,
    out_reported_as=False, doc="The modified Bessel function of the second kind of order 1.")
scaled_modified_bessel_k0 = pointwise(
    "special_scaled_modified_bessel_k0(Tensor x)", kernel=kernel.k0e, floating=True, inplace=False,
    d=lambda x, result: result - scaled_modified_bessel_k1(x),
    out_reported_as=False, doc="exp(input) · modified_bessel_k0.")
scaled_modified_bessel_k1 = pointwise(
    "special_scaled_modified_bessel_k1(Tensor x)", kernel=kernel.k1e, floating=True, inplace=False,
    d=lambda x, result: result - result / x - scaled_modified_bessel_k0(x),
    out_reported_as=False, doc="exp(input) · modified_bessel_k1.")


def _spherical_derivative(x: Tensor, result: Tensor) -> Tensor:
    zero = x == 0
    return where(zero, 0, (cos(x) - result) / where(zero, 1, x))


spherical_bessel_j0 = pointwise("special_spherical_bessel_j0(Tensor x)",
                                kernel=kernel.spherical_j0, floating=True,
                                refuses=("spherical_bessel_j0_cpu", _WIDE), inplace=False,
                                d=_spherical_derivative, out_reported_as=False,
                                doc="sin(input) / input.")
airy_ai = pointwise("special_airy_ai(Tensor x)", kernel=kernel.airy_ai, floating=True,
                    inplace=False, d=lambda x: _airy_prime(x),
                    out_reported_as=False, doc="The Airy function Ai, which solves f'' = x f.")
_airy_prime = pointwise("airy_ai_prime(Tensor self)", kernel=kernel.airy_ai_prime, floating=True,
                        function=False, method=False, inplace=False,
                        d=lambda self: self * airy_ai(self))

# ---- the normal distribution --------------------------------------------------------------------

erfcx = pointwise("special_erfcx(Tensor self)", kernel=kernel.erfcx, floating=True,
                  inplace=False, node="SpecialErfcxBackward0",
                  d=lambda self, result: 2 * self * result - 2 / sqrt(pi),
                  doc="exp(input²) · erfc(input).")
ndtr = pointwise("special_ndtr(Tensor self)", kernel=kernel.ndtr, floating=True, inplace=False,
                 refuses=("erf_vml_cpu", "c"),
                 node="MulBackward1", out_reported_as=None,
                 d=lambda self: exp(self * self * -0.5) / sqrt(2 * pi),
                 doc="The area under the standard normal density left of the input.")
ndtri = pointwise("special_ndtri(Tensor self)", kernel=kernel.ndtri, floating=True,
                  inplace=False, node="SpecialNdtriBackward0",
                  d=lambda result: exp(result * result * 0.5) * sqrt(2 * pi),
                  doc="The inverse of ndtr, on (0, 1).")
log_ndtr = pointwise("special_log_ndtr(Tensor self)", kernel=kernel.log_ndtr, floating=True,
                     inplace=False, node="SpecialLogNdtrBackward0",
                     d=lambda self: sqrt(2 / pi) * reciprocal(erfcx(self * -sqrt(0.5))),
                     doc="The logarithm of ndtr, exact also where that is small.")
entr = pointwise("special_entr(Tensor self)", kernel=kernel.entr, floating=True, inplace=False,
                 node="SpecialEntrBackward0",
                 d=lambda self: neg(log(self) + 1), doc="-input · log(input), 0 at 0.")

# ---- logarithms ---------------------------------------------------------------------------------


def _unless_zero(self: Any, other: Any, pole: float, value: Any) -> Any:
    """`value`, a logarithm of `other`; but 0 where `other` is at its pole and `self` is 0."""
    if isinstance(other, Tensor):
        return where((other <= pole) & (self == 0), 0, value)
    return where(self == 0, 0, value) if other <= pole else value


xlogy = pointwise("xlogy.Tensor(Tensor self, Tensor other)",
                  "xlogy.Scalar_Self(Scalar self, Tensor other)",
                  "xlogy.Scalar_Other(Tensor self, Scalar other)", kernel=kernel.xlogy,
                  floating=True, aliases=("special_xlogy(Tensor self, Tensor other) -> Tensor",
                  "special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor",
                  "special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor",),
                  d_other=lambda self, other: self / other,
                  d_self=lambda self, other: _unless_zero(
                      self, other, 0, (log if isinstance(other, Tensor) else _number_log)(other)),
                  doc="input · log(other), 0 where the input is 0.")
xlog1py = pointwise("special_xlog1py(Tensor self, Tensor other)",
                    "special_xlog1py.self_scalar(Scalar self, Tensor other)",
                    "special_xlog1py.other_scalar(Tensor self, Scalar other)",
                    kernel=kernel.xlog1py, floating=True, inplace=False,
                    node="SpecialXlog1PyBackward{}",
                    d_other=lambda self, other: self / (other + 1),
                    d_self=lambda self, other: _unless_zero(
                        self, other, -1,
                        log1p(other) if isinstance(other, Tensor) else _number_log(other + 1)),
                    doc="input · log(1 + other), 0 where the input is 0.")

def _number_log(value: Any) -> float:
    return number_log(value) if value > 0 else -float("inf") if value == 0 else float("nan")


logaddexp = pointwise("logaddexp(Tensor self, Tensor other)", kernel=kernels.logaddexp,
                      inplace=False,
                      d_self=lambda self, other: sigmoid(self - other),
                      d_other=lambda self, other: sigmoid(other - self),
                      doc="log(exp(input) + exp(other)), computed without overflow.")
logaddexp2 = pointwise("logaddexp2(Tensor self, Tensor other)", kernel=kernels.logaddexp2,
                       inplace=False,
                       d_self=lambda self, other: sigmoid((self - other) * number_log(2)),
                       d_other=lambda self, other: sigmoid((other - self) * number_log(2)),
                       doc="log2(2^input + 2^other), computed without overflow.")


def _logit_vjp(grad: Tensor, self: Tensor, eps: float | None) -> Tensor:
    low, high = (0, 1) if eps is None else (eps, 1 - eps)
    outside, beyond = (self < low) | (self > high), float("nan") if eps is None else 0
    if grad_enabled():                      # what has a derivative lies as the point
        return where(outside, beyond, grad / (self * (1 - self)))
    return grad * where(outside, beyond, reciprocal(self * (1 - self)))


logit = pointwise("logit(Tensor self, float? eps=None)", floating=True,
                  kernel=lambda self, eps: kernel.logit(self, -1.0 if eps is None else eps),
                  aliases=("special_logit(Tensor self, float? eps=None) -> Tensor",),
                  refuses=("logit_cpu", _REAL), vjp=_logit_vjp,
                  doc="""log(p / (1 - p)) of probabilities, first brought into [eps, 1 - eps] if
    `eps` is given.

    >>> import flambeau
    >>> flambeau.logit(flambeau.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """)


def _sinc_derivative(self: Tensor) -> Tensor:
    zero = self == 0
    return where(zero, 0, (cos(self * pi) - sinc(self)) / where(zero, 1, self))


sinc = pointwise("sinc(Tensor self)", kernel=kernel.sinc, floating=True,
                 aliases=("special_sinc(Tensor self) -> Tensor",), d=_sinc_derivative,
                 doc="sin(πx) / (πx), 1 at 0.")

# ---- parts of floating-point numbers ------------------------------------------------------------


frexp = op(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", kernel=kernel.frexp,
    refuses=("frexp_cpu", "8"),
    differentiable=(True, False), core="()->(),()", overlap="element",
    out_type=lambda read, out, found: (
        "torch.frexp() expects mantissa to have dtype {c_found} but got {c_out}"
        if found.is_floating_point else
        "torch.frexp() expects exponent to have int dtype but got {c_out}"),
    vjp=lambda grad, exponent: (grad[0] / pow(2.0, exponent),),
    jvp=lambda self_t, exponent: (self_t / pow(2.0, exponent), None),
    doc="The mantissa in [1/2, 1) and the exponent: input = mantissa · 2^exponent.")


def _scaled_by_powers(input: Tensor, exponent: Tensor) -> Tensor:
    """input · 2^exponent for integers, also where 2^exponent itself would overflow or vanish: in
    double precision, of which all powers that matter to other types are numbers, or in two steps.
    """
    own, wide = input._array.dtype, np.dtype(np.float64)
    if exponent._array.itemsize > 1:
        exponent = exponent.clamp(-2046, 2046)
    if own.itemsize < 8 and own.kind != "c":
        return cast(mul(cast(input, wide), pow(2.0, cast(exponent, wide))), own)
    half = exponent.div(2, rounding_mode="floor")
    return mul(mul(input, pow(2.0, cast(half, wide))),
               pow(2.0, cast(exponent - half, wide)))


def _check_written_ldexp(self: Tensor, other: Tensor) -> None:
    if self._array.dtype not in FLOATING:
        raise RuntimeError("ldexp can't be cast to the desired output type "
                           f"{type_name(self.dtype)}")


@op("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", inplace=True, inplace_function=True,
    inplace_first=_check_written_ldexp, overlap="element",
    out_cast=lambda read, out, found:
    "" if found.is_complex and out.is_floating_point else
    "ldexp can't be cast to the desired output type {out}")
@one_node
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    """input · 2^other."""
    if self._array.dtype.kind == "f":
        refuse(other._array, "b", "ldexp_cpu_exp")
    if other._array.dtype.kind in "iu" and self._array.dtype in FLOATING:
        return _scaled_by_powers(self, other)
    return mul(self, pow(2.0, other))


def _check_heaviside(self: Tensor, values: Tensor) -> None:
    if self._array.dtype.kind in "cW" or values._array.dtype.kind in "cW":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


heaviside = pointwise("heaviside(Tensor self, Tensor values)", kernel=kernels.heaviside,
                      check=_check_heaviside, refuses=("heaviside_cpu", "UcW8"), d_self=0,
                      out_reported_as="aten::heaviside", out_type=lambda read, out, found: (
                          "heaviside is not yet implemented for " + (
                              "complex tensors." if out.is_complex
                              else "tensors with different dtypes.")),
                      d_values=lambda self: self == 0,
                      doc="0 where the input is negative, 1 where it is positive, `values` where it"
                          " is zero.")


@op("special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", out=False)
def special_softmax(self: Tensor, dim: int, dtype: Any) -> Tensor:
    """exp(x) / Σ exp(x) along `dim`."""
    return softmax(self, dim, dtype=dtype)


@op("special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", out=False)
def special_log_softmax(self: Tensor, dim: int, dtype: Any) -> Tensor:
    """x - log Σ exp(x) along `dim`."""
    return log_softmax(self, dim, dtype=dtype)


__all__ = ["digamma", "lgamma", "logit", "sinc", "xlogy"]
