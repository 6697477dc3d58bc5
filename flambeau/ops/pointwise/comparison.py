"""Comparison, logic, and the larger or smaller of two."""
from __future__ import annotations

from math import inf
from typing import Any

from flambeau import kernels
from flambeau.core import late_bound
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.pointwise import pointwise
from flambeau.kernels.refused import characters
from flambeau.ops.coercion import check_tensors
from flambeau.ops.factory.create import ones_like
from flambeau.ops.pointwise.arithmetic import abs, mul
from flambeau.ops.pointwise.complex import imag
from flambeau.ops.view.conversion import cast


def _declare(name: str, kernel: Any, symbol: str, doc: str, alias: str = "", kinds: str = ""
             ) -> Any:
    texts = ["{}.Tensor(Tensor self, Tensor other)", "{}.Scalar(Tensor self, Scalar other)"]
    return pointwise(*[text.format(name) for text in texts], kernel=kernel, operators=symbol,
                     aliases=[f"{text.format(alias)} -> Tensor" for text in texts if alias],
                     refuses=(f"{name}_cpu", kinds), boolean=True, doc=doc,
                     inplace_node=f"{name.title()}Backward1 {name.title()}Backward0")


eq = _declare("eq", kernels.equal, "__eq__", "input = other.")
ne = _declare("ne", kernels.not_equal, "__ne__", "input ≠ other.", "not_equal")
lt = _declare("lt", kernels.less, "__lt__", "input < other.", "less", "UcW8")
le = _declare("le", kernels.less_equal, "__le__", "input ≤ other.", "less_equal", "UcW8")
gt = _declare("gt", kernels.greater, "__gt__", "input > other.", "greater", "UcW8")
ge = _declare("ge", kernels.greater_equal, "__ge__", "input ≥ other.", "greater_equal", "UcW8")

# ---- logic --------------------------------------------------------------------------------------

logical_and = pointwise("logical_and(Tensor self, Tensor other)", kernel=kernels.logical_and,
                        refuses=("logical_and_cpu", "UW8"), doc="Are both elements not zero?")
logical_or = pointwise("logical_or(Tensor self, Tensor other)", kernel=kernels.logical_or,
                       refuses=("logical_or_cpu", "UW8"), doc="Is either element not zero?")
logical_xor = pointwise("logical_xor(Tensor self, Tensor other)", kernel=kernels.logical_xor,
                        refuses=("logical_xor_cpu", "UW8"),
                        doc="Is exactly one of the elements not zero?")
logical_not = pointwise("logical_not(Tensor self)", kernel=kernels.logical_not,
                        refuses=("logical_not_cpu", "UW8"), doc="Is the element zero?")

# ---- kinds of numbers ---------------------------------------------------------------------------

_ASKS: dict[str, Any] = {"inplace": False, "out": False}
isnan = pointwise("isnan(Tensor self)", kernel=kernels.isnan, doc="Is the element NaN?", **_ASKS)
isinf = pointwise("isinf(Tensor self)", kernel=kernels.isinf, refuses=("isinf", "8"),
                  doc="Is the element ±inf?", **_ASKS)
def _isfinite_calls(self: Tensor) -> Any:
    if not self.is_floating_point():
        return NotImplemented
    bounded = ne(abs(self), inf)
    return mul(eq(self, self), bounded)


isfinite = pointwise("isfinite(Tensor self)", kernel=kernels.isfinite, aten_calls=_isfinite_calls,
                     refuses=(lambda self: "isfinite" if self.dtype.char in "4GC" else "", "8"),
                     doc="Is the element neither ±inf nor NaN?", **_ASKS)


def _declare_infinity(name: str, value: float) -> Any:
    def kernel(self: Any) -> Any:
        return kernels.isinf(self) if self.dtype.kind in "bui" else kernels.equal(self, value)
    return pointwise(f"{name}(Tensor self)", kernel=kernel, inplace=False,
                     refuses=(f"{name}_cpu", "cW8"),
                     out_type=f"{name} does not support non-boolean outputs.",
                     refused_as={"c": RuntimeError(f"{name} does not support complex inputs.")},
                     doc=f"Is the element {value:+}?")


isposinf = _declare_infinity("isposinf", float("inf"))
isneginf = _declare_infinity("isneginf", -float("inf"))
signbit = pointwise("signbit(Tensor self)", kernel=kernels.signbit, inplace=False,
                    refuses=("signbit_cpu", "cW"),
                    out_type="signbit does not support non-boolean outputs.",
                    refused_as={"c": "signbit is not implemented for complex tensors."},
                    doc="Is the sign bit set? True of -0.0 too.")


@op("isreal(Tensor self) -> Tensor", out=False)
def isreal(input: Tensor) -> Tensor:
    """Is the imaginary part zero?"""
    return eq(imag(input), 0) if input._array.dtype.kind in "cW" else eq(
        ones_like(input), 1)


_CLOSE = ("Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False")


@op(f"isclose({_CLOSE}) -> Tensor", out=False)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08,
            equal_nan: bool = False) -> Tensor:
    """Is |input - other| ≤ atol + rtol · |other|, element by element?

    >>> import flambeau
    >>> flambeau.isclose(flambeau.tensor([1.0, 2.0]), flambeau.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    check_tensors("isclose", input=input, other=other)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{type_name(input.dtype)} did not match {type_name(other.dtype)}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    close = eq(input, other)
    if equal_nan and (input.dtype.is_floating_point or input.dtype.is_complex):
        close = close | (isnan(input) & isnan(other))
    if rtol == 0 and atol == 0:
        return close
    if input._array.dtype.kind == "b":
        input, other = (cast(t, _int64()) for t in (input, other))
    if input._array.dtype.kind in "ui":
        other = cast(other, _default_float())
    allowed = abs(other * rtol) + atol
    distance = abs(input - other)
    near = isfinite(distance)
    near &= le(distance, allowed)
    close |= near
    return close


def _int64() -> Any:
    from flambeau.core import dtypes
    return dtypes.int64.numpy


def _default_float() -> Any:
    from flambeau.core import dtypes
    return dtypes.default_float()


@op(f"allclose({_CLOSE}) -> bool", out=False, explicit=True)
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08,
             equal_nan: bool = False) -> bool:
    """Are all elements close, as `isclose` has it?"""
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


# ---- the larger or smaller of two ---------------------------------------------------------------


def _real_only(name: str) -> Any:
    """What PyTorch looks at before the shapes."""
    def check(self: Tensor, other: Tensor) -> None:
        if self.is_complex() or other.is_complex():
            raise RuntimeError(f"{name} not implemented for complex tensors.")
    return check


def _declare_choice(name: str, kernel: Any, loses: Any, wins: Any, doc: str, *aliases: str) -> Any:
    """`maximum` or `minimum`: equal elements share the gradient, NaN passes it to both."""
    def vjp(grad: Tensor, self: Tensor, other: Any, needs: Any) -> Any:
        half = late_bound.where(eq(self, other), grad / 2, grad)
        return (late_bound.where(loses(self, other), 0, half) if needs[0] else None,
                late_bound.where(wins(self, other), 0, half) if needs[1] else None)

    return pointwise(f"{name}(Tensor self, Tensor other)", kernel=kernel, vjp=vjp, inplace=False,
                     refuses=(f"{name}_cpu", "UcW8"), doc=doc, first=_real_only(name),
                     refused_as={"c": f"{name} not implemented for complex tensors."},
                     aliases=[f"{alias}(Tensor self, Tensor other) -> Tensor" for alias in aliases])


def _declare_fmax(name: str, kernel: Any, wins: Any, doc: str) -> Any:
    """`fmax` or `fmin`: NaN loses, and `self` takes the gradient of equal elements."""
    def vjp(grad: Tensor, self: Tensor, other: Any, needs: Any) -> Any:
        first = wins(self, other) | isnan(other)
        return (late_bound.where(first, grad, 0) if needs[0] else None,
                late_bound.where(first, 0, grad) if needs[1] else None)

    return pointwise(f"{name}(Tensor self, Tensor other)", kernel=kernel, vjp=vjp, inplace=False,
                     refuses=(lambda x, *_: f"{name[1:]}imum_cpu" if x.dtype.char in
                              characters("U") else f"{name}_cpu", "UcW8"), doc=doc,
                     first=_real_only(name),
                     refused_as={"c": f"{name} not implemented for complex tensors."})


maximum = _declare_choice("maximum", kernels.maximum, lt, gt,
                          "The larger of each pair; NaN if either is NaN.")
minimum = _declare_choice("minimum", kernels.minimum, gt, lt,
                          "The smaller of each pair; NaN if either is NaN.")
fmax = _declare_fmax("fmax", kernels.fmax, ge,
                     "The larger of each pair; NaN only if both are.")
fmin = _declare_fmax("fmin", kernels.fmin, le,
                     "The smaller of each pair; NaN only if both are.")


@op("is_nonzero(Tensor self) -> bool", out=False)
def is_nonzero(input: Tensor) -> bool:
    """Is the one element of this tensor not zero?"""
    if input._array.size != 1:
        raise RuntimeError("Boolean value of Tensor with "
                           + ("more than one value" if input._array.size else "no values")
                           + " is ambiguous")
    return bool(input.item())


__all__ = ["eq", "ge", "gt", "isclose", "isfinite", "isnan", "le", "lt", "maximum",
           "minimum", "ne"]
