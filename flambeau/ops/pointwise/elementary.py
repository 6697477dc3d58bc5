"""Elementary functions: exponentials, logarithms, trigonometry, and the error function."""
from __future__ import annotations

from math import inf, pi
from math import log as number_log
from math import sqrt as number_sqrt
from typing import Any

from flambeau import kernels
from flambeau.core.autograd.formulas import conjugate, divides_by
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import AtenForm, op
from flambeau.dispatch.pointwise import pointwise
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.pointwise.arithmetic import mul, neg, rsqrt
from flambeau.ops.pointwise.complex import conjugated, real_part
from flambeau.ops.pointwise.conditional import where

# ---- exponentials and logarithms ----------------------------------------------------------------

LN2, LN10 = number_log(2), number_log(10)

exp = pointwise("exp(Tensor self)", refuses=("exp_vml_cpu", ""), kernel=kernels.exp, floating=True,
                d=lambda result: result, doc="""e to the power of each element.

    >>> import flambeau
    >>> flambeau.exp(flambeau.zeros(2))
    tensor([1., 1.])
    """)
exp2 = pointwise("exp2(Tensor self)", refuses=("exp2", "W8"), kernel=kernels.exp2, floating=True,
                 d=lambda result: result * LN2,
                 aliases=("special_exp2(Tensor self)",), doc="2 to the power of each element.")
expm1 = pointwise("expm1(Tensor self)", refuses=("expm1_vml_cpu", ""),
                  kernel=kernels.expm1, floating=True, d=lambda result: result + 1,
                  aliases=("special_expm1(Tensor self)",), doc="exp(input) - 1, exact also near 0.")
log = pointwise("log(Tensor self)", refuses=("log_vml_cpu", ""), kernel=kernels.log,
                floating=True, d=divides_by(lambda self: self),
                doc="The natural logarithm.")
log2 = pointwise("log2(Tensor self)", refuses=("log2_vml_cpu", ""), kernel=kernels.log2,
                 floating=True, d=divides_by(lambda self: self * LN2),
                 doc="The logarithm to base 2.")
log10 = pointwise("log10(Tensor self)", refuses=("log10_vml_cpu", ""),
                  kernel=kernels.log10, floating=True, d=divides_by(lambda self: self * LN10),
                  doc="The logarithm to base 10.")
log1p = pointwise("log1p(Tensor self)", refuses=("log1p_vml_cpu", ""),
                  kernel=kernels.log1p, floating=True, d=divides_by(lambda self: self + 1),
                  aliases=("special_log1p(Tensor self)",), node="Log1PBackward0",
                  doc="log(1 + input), exact also near 0.")
sqrt = pointwise("sqrt(Tensor self)", refuses=("sqrt_vml_cpu", ""), kernel=kernels.sqrt,
                 floating=True, d=divides_by(lambda result: 2 * result),
                 doc="The square root.")
sigmoid = pointwise("sigmoid(Tensor self)", kernel=kernels.sigmoid, floating=True,
                    aliases=("special_expit(Tensor self) -> Tensor",),
                    aten=(AtenForm("sigmoid(Tensor self) -> Tensor", grads=lambda grad, result: (
                        sigmoid_backward(grad, result))),),
                    d=lambda result: (1 - result) * result, doc="1 / (1 + exp(-input)).")


def _declare_backward(name: str, slope: Any, bend: Any) -> Any:
    """The op that gives the gradient of `name`, whose derivatives by its result y are `slope` and
    `bend`, which is given what it is multiplied by."""
    made = op(
        f"{name}_backward(Tensor grad_output, Tensor output) -> Tensor", function=False,
        method=False, explicit=True, body=lambda grad, output: grad * conjugate(slope(output)),
        aten=(AtenForm(
            f"{name}_backward(Tensor grad_output, Tensor output) -> Tensor",
            grads=lambda grad, needs, grad_output, output: (
                made(grad, conjugate(output)) if needs[0] else None,
                bend(conjugate(grad), conjugate(output), grad_output) if needs[1] else None)),),
        doc=f"The gradient of `{name}`, of its result.")
    return made


sigmoid_backward = _declare_backward(
    "sigmoid", lambda y: (1 - y) * y, lambda g, y, to: g * to * (-2 * y + 1))
tanh_backward = _declare_backward("tanh", lambda y: 1 - y * y, lambda g, y, to: g * (-2 * y * to))

# ---- trigonometry -------------------------------------------------------------------------------

sin = pointwise("sin(Tensor self)", refuses=("sin_vml_cpu", ""), kernel=kernels.sin,
                floating=True, d=lambda self: cos(self), doc="The sine.")
cos = pointwise("cos(Tensor self)", refuses=("cos_vml_cpu", ""), kernel=kernels.cos,
                floating=True, d=lambda self: neg(sin(self)), doc="The cosine.")
tan = pointwise("tan(Tensor self)", refuses=("tan_vml_cpu", ""), kernel=kernels.tan,
                floating=True, d=lambda result: result * result + 1,
                doc="The tangent.")
asin = pointwise("asin(Tensor self)", refuses=("asin_vml_cpu", ""), kernel=kernels.arcsin,
                 floating=True, d=lambda self: rsqrt(1 - self * self),
                 aliases=("arcsin(Tensor self)",), doc="The inverse sine.")
acos = pointwise("acos(Tensor self)", refuses=("acos_vml_cpu", ""), kernel=kernels.arccos,
                 floating=True, d=lambda self: neg(rsqrt(1 - self * self)),
                 aliases=("arccos(Tensor self)",), doc="The inverse cosine.")
atan = pointwise("atan(Tensor self)", refuses=("atan_vml_cpu", ""), kernel=kernels.arctan,
                 floating=True, d=divides_by(lambda self: self * self + 1),
                 aliases=("arctan(Tensor self)",), doc="The inverse tangent.")


def _squared_distance(self: Tensor, other: Tensor):
    """x² + y², infinite at the origin, where the angle has the subgradient 0."""
    square = self * self + other * other
    return where(square == 0, inf, square)


atan2 = pointwise("atan2(Tensor self, Tensor other)", kernel=kernels.arctan2, floating=True,
                  aliases=("arctan2(Tensor self, Tensor other)",),
                  d_self=lambda self, other: other / _squared_distance(self, other),
                  d_other=lambda self, other: neg(self / _squared_distance(self, other)),
                  doc="The angle of the point (x=other, y=input), in (-π, π].")
sinh = pointwise("sinh(Tensor self)", kernel=kernels.sinh, floating=True, d=lambda self: cosh(self),
                 doc="The hyperbolic sine.")
cosh = pointwise("cosh(Tensor self)", kernel=kernels.cosh, floating=True, d=lambda self: sinh(self),
                 doc="The hyperbolic cosine.")
tanh = pointwise("tanh(Tensor self)", refuses=("tanh_vml_cpu", ""), kernel=kernels.tanh,
                 floating=True, d=lambda result: 1 - result * result,
                 aten=(AtenForm("tanh(Tensor self) -> Tensor", grads=lambda grad, result: (
                     tanh_backward(grad, result))),),
                 doc="The hyperbolic tangent.")
asinh = pointwise("asinh(Tensor self)", kernel=kernels.arcsinh, floating=True,
                  d=lambda self: rsqrt(self * self + 1),
                  aliases=("arcsinh(Tensor self)",), doc="The inverse hyperbolic sine.")
acosh = pointwise("acosh(Tensor self)", kernel=kernels.arccosh, floating=True,
                  aliases=("arccosh(Tensor self)",),
                  d=lambda self: rsqrt(self * self - 1) if self._array.dtype.kind not in "cW"
                  else rsqrt(self + 1) * rsqrt(self - 1), doc="The inverse hyperbolic cosine.")
atanh = pointwise("atanh(Tensor self)", kernel=kernels.arctanh, floating=True,
                  aliases=("arctanh(Tensor self)",),
                  d=divides_by(lambda self: 1 - self * self), doc="The inverse hyperbolic tangent.")


def _declare_angle(name: str, factor: float, doc: str) -> None:
    pointwise(f"{name}(Tensor self)", kernel=lambda self: kernels.multiply(self, factor),
              floating=True, d=factor, doc=doc, refuses=("mul_cpu_reduced_float", "cW8"),
              refused_as=dict.fromkeys("cW", RuntimeError(
                  f"{name} is not supported for complex tensors.")),
              node=f"{name[:3].capitalize()}2{name[4:].capitalize()}Backward0")


_declare_angle("deg2rad", pi / 180, "Angles in degrees as radians.")
_declare_angle("rad2deg", 180 / pi, "Angles in radians as degrees.")


def _phase_derivative(self: Tensor):
    """The change of a complex number that turns it by one radian a unit: i z / |z|²."""
    if self._array.dtype.kind not in "cW":
        return zeros_like(self)
    size = real_part(self * conjugated(self))
    return where(size == 0, 0, self * 1j / where(size == 0, 1, size))


angle = pointwise("angle(Tensor self)", kernel=kernels.angle, floating=True, inplace=False,
                  vjp=lambda grad, self: grad * _phase_derivative(self),
                  jvp=lambda self_t, self: real_part(self_t * conjugated(_phase_derivative(self))),
                  doc="The angle of complex numbers, in (-π, π]; of real ones 0 or π.")

# ---- the error function -------------------------------------------------------------------------

_SLOPE = 2 / number_sqrt(pi)
erf = pointwise("erf(Tensor self)", refuses=("erf_vml_cpu", ""), kernel=kernels.erf,
                floating=True, aliases=("special_erf(Tensor self)",),
                d=lambda grad, self: exp(neg(self * self)) * _SLOPE * grad,
                doc="The error function 2/√π ∫₀ˣ exp(-t²) dt.")
erfc = pointwise("erfc(Tensor self)", refuses=("erfc_vml_cpu", ""), kernel=kernels.erfc,
                 floating=True, aliases=("special_erfc(Tensor self)",),
                 d=lambda grad, self: exp(neg(self * self)) * -_SLOPE * grad,
                 doc="1 - erf(input), exact also where that is small.")
erfinv = pointwise("erfinv(Tensor self)", refuses=("erfinv_vml_cpu", ""),
                   kernel=kernels.erfinv, floating=True, aliases=("special_erfinv(Tensor self)",),
                   d=lambda grad, result: exp(result * result) * (1 / _SLOPE) * grad,
                   doc="The inverse of the error function, on (-1, 1).")

__all__ = ["exp", "log", "mul", "sqrt"]
