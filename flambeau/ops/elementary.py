"""Elementary functions: exponentials, logarithms, trigonometry, and the error function."""
from __future__ import annotations

from math import inf, pi
from math import log as number_log
from math import sqrt as number_sqrt

from flambeau import kernels
from flambeau.core.op import composite, over, pointwise
from flambeau.core.tensor import Tensor, basis
from flambeau.ops.pointwise import mul, neg, rsqrt

# ---- exponentials and logarithms ----------------------------------------------------------------

LN2, LN10 = number_log(2), number_log(10)

exp = pointwise("exp", kernels.exp, floating=True, d=lambda result: result, doc="""e to the power
    of each element.

    >>> import flambeau
    >>> flambeau.exp(flambeau.zeros(2))
    tensor([1., 1.])
    """)
exp2 = pointwise("exp2", kernels.exp2, floating=True, d=lambda result: result * LN2,
                 namespace=("torch", "special"), doc="2 to the power of each element.")
expm1 = pointwise("expm1", kernels.expm1, floating=True, d=lambda result: result + 1,
                  namespace=("torch", "special"), doc="exp(input) - 1, exact also near 0.")
log = pointwise("log", kernels.log, floating=True, d=over(lambda self: self),
                doc="The natural logarithm.")
log2 = pointwise("log2", kernels.log2, floating=True, d=over(lambda self: self * LN2),
                 doc="The logarithm to base 2.")
log10 = pointwise("log10", kernels.log10, floating=True, d=over(lambda self: self * LN10),
                  doc="The logarithm to base 10.")
log1p = pointwise("log1p", kernels.log1p, floating=True, d=over(lambda self: self + 1),
                  namespace=("torch", "special"), node_name="Log1PBackward0",
                  doc="log(1 + input), exact also near 0.")
sqrt = pointwise("sqrt", kernels.sqrt, floating=True, d=over(lambda result: 2 * result),
                 doc="The square root.")
sigmoid = pointwise("sigmoid", kernels.sigmoid, floating=True,
                    d=lambda result: (1 - result) * result, doc="1 / (1 + exp(-input)).")

# ---- trigonometry -------------------------------------------------------------------------------

sin = pointwise("sin", kernels.sin, floating=True, d=lambda self: cos(self), doc="The sine.")
cos = pointwise("cos", kernels.cos, floating=True, d=lambda self: neg(sin(self)), doc="The cosine.")
tan = pointwise("tan", kernels.tan, floating=True, d=lambda result: result * result + 1,
                doc="The tangent.")
asin = pointwise("asin", kernels.arcsin, floating=True, d=lambda self: rsqrt(1 - self * self),
                 aliases=("arcsin",), doc="The inverse sine.")
acos = pointwise("acos", kernels.arccos, floating=True, d=lambda self: neg(rsqrt(1 - self * self)),
                 aliases=("arccos",), doc="The inverse cosine.")
atan = pointwise("atan", kernels.arctan, floating=True, d=over(lambda self: self * self + 1),
                 aliases=("arctan",), doc="The inverse tangent.")


def _squared_distance(self: Tensor, other: Tensor) -> Tensor:
    """x² + y², infinite at the origin, where the angle has the subgradient 0."""
    square = self * self + other * other
    return basis.where(square == 0, inf, square)


atan2 = pointwise("atan2", kernels.arctan2, floating=True, aliases=("arctan2",), numbers="",
                  d_self=lambda self, other: other / _squared_distance(self, other),
                  d_other=lambda self, other: neg(self / _squared_distance(self, other)),
                  doc="The angle of the point (x=other, y=input), in (-π, π].")
sinh = pointwise("sinh", kernels.sinh, floating=True, d=lambda self: cosh(self),
                 doc="The hyperbolic sine.")
cosh = pointwise("cosh", kernels.cosh, floating=True, d=lambda self: sinh(self),
                 doc="The hyperbolic cosine.")
tanh = pointwise("tanh", kernels.tanh, floating=True, d=lambda result: 1 - result * result,
                 doc="The hyperbolic tangent.")
asinh = pointwise("asinh", kernels.arcsinh, floating=True, d=lambda self: rsqrt(self * self + 1),
                  aliases=("arcsinh",), doc="The inverse hyperbolic sine.")
acosh = pointwise("acosh", kernels.arccosh, floating=True, aliases=("arccosh",),
                  d=lambda self: rsqrt(self * self - 1) if self._array.dtype.kind not in "cW"
                  else rsqrt(self + 1) * rsqrt(self - 1), doc="The inverse hyperbolic cosine.")
atanh = pointwise("atanh", kernels.arctanh, floating=True, aliases=("arctanh",),
                  d=over(lambda self: 1 - self * self), doc="The inverse hyperbolic tangent.")


def _degrees(name: str, factor: float, doc: str) -> None:
    def kernel(x: object) -> object:
        if x.dtype.kind in "cW":
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return kernels.multiply(x, factor)
    pointwise(name, kernel, floating=True, d=factor, doc=doc,
              node_name=f"{name[:3].capitalize()}2{name[4:].capitalize()}Backward0")


_degrees("deg2rad", pi / 180, "Angles in degrees as radians.")
_degrees("rad2deg", 180 / pi, "Angles in radians as degrees.")



def _turning(self: Tensor) -> Tensor:
    """The change of a complex number that turns it by one radian a unit: i z / |z|²."""
    if self._array.dtype.kind not in "cW":
        return basis.zeros_like(self)
    size = basis.real(self * basis.conj(self))
    return basis.where(size == 0, 0, self * 1j / basis.where(size == 0, 1, size))


angle = pointwise("angle", kernels.angle, floating=True, inplace=False,
                  vjp=lambda grad, self: grad * _turning(self),
                  doc="The angle of complex numbers, in (-π, π]; of real ones 0 or π.")
angle.op.jvp_rule = lambda self_t, self: basis.real(self_t * basis.conj(_turning(self)))

# ---- the error function -------------------------------------------------------------------------

_SLOPE = 2 / number_sqrt(pi)
erf = pointwise("erf", kernels.erf, floating=True, namespace=("torch", "special"),
                d=lambda self: exp(neg(self * self)) * _SLOPE,
                doc="The error function 2/√π ∫₀ˣ exp(-t²) dt.")
erfc = pointwise("erfc", kernels.erfc, floating=True, namespace=("torch", "special"),
                 d=lambda self: exp(neg(self * self)) * -_SLOPE,
                 doc="1 - erf(input), exact also where that is small.")
erfinv = pointwise("erfinv", kernels.erfinv, floating=True, namespace=("torch", "special"),
                   d=lambda result: exp(result * result) * (1 / _SLOPE),
                   doc="The inverse of the error function, on (-1, 1).")

for _function in (erf, erfc, erfinv, acos, asin, atan, cos, exp, expm1, log, log10, log1p, log2,
                  sin, sqrt, tan, tanh):
    _function.op.refusal = {"": f"{_function.op.name}_vml_cpu"}
basis.log, basis.exp, basis.sqrt = log, exp, sqrt
__all__ = ["Tensor", "composite", "exp", "log", "mul", "sqrt"]
