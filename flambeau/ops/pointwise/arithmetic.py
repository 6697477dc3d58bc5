"""Arithmetic element by element: sums, products, quotients, powers, signs.

A derivative is the formula `d`: what a change of the argument is multiplied by.
"""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau._support.c_functions import type_name as type_name_of
from flambeau.core import late_bound
from flambeau.core.autograd.formulas import conjugate, divides_by
from flambeau.core.dtypes import FLOATING
from flambeau.core.promotion import (
    c_name,
    convert,
    is_half,
    number_of,
    result_type,
    scalar_operand,
    type_label,
    type_name,
)
from flambeau.core.shapes import broadcast_error, broadcast_shapes
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.declaration import op
from flambeau.dispatch.pointwise import pointwise
from flambeau.kernels.refused import by_one, characters, no_kernel, refuse
from flambeau.ops.coercion import as_element, within
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.node_names import times
from flambeau.ops.out_types import FOUND_TYPE
from flambeau.ops.view.conversion import cast
from flambeau.schema.errors import no_instance

# ---- sums, products, quotients ------------------------------------------------------------------

_WITH_NUMBERS: dict[str, Any] = {"numbers": True, "hidden": "Scalar", "out": "Tensor"}


def _scaled(sign: int) -> Any:
    """The kernel of a sum with `alpha` times the second operand: rounded once, alpha as an element
    would be."""
    def kernel(self: np.ndarray, other: np.ndarray, alpha: Any,
               out: np.ndarray | None = None) -> np.ndarray:
        alpha = number_for(self.dtype, alpha)
        if self.dtype.kind == "b":
            return kernels.add(self, kernels.multiply(other, alpha))
        return kernels.axpy(self, other, convert(np.asarray(sign * alpha), self.dtype), out)
    return kernel


def number_for(dtype: np.dtype, alpha: Any) -> Any:
    """`alpha` as a number for sums of that type; raises if it is none."""
    if isinstance(alpha, bool) and dtype.kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and dtype.kind in "bui":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating "
                           "point number.")
    if isinstance(alpha, complex) and dtype.kind not in "cW":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex "
                           "number.")
    return bool(alpha) if dtype.kind == "b" else alpha


add = pointwise("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                kernel=_scaled(1), default_kernel=kernels.add, refuses=("add_stub", "U8"),
                d_self=1, d_other=lambda alpha: alpha, operators="__add__ __radd__ __iadd__",
                deprecated=("add(Tensor self, Scalar alpha, Tensor other) -> Tensor",),
                **_WITH_NUMBERS, doc="""The sum of two tensors, or of a tensor and a number; `other`
    times `alpha`.

    >>> import flambeau
    >>> flambeau.add(flambeau.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([21., 22.])
    """)
_MASK = " is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` " \
    "operator instead."
_TWO_BOOLS = "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` " \
    "or `logical_xor()` operator instead."


def refuse_bool(self: Any, other: Any, *_: Any) -> None:
    """Raise if either operand of a subtraction is boolean."""
    found = [x for x in (self, other) if type(x) is bool
             or (isinstance(x, Tensor) and x._array.dtype.kind == "b")]
    if found:
        raise RuntimeError(_TWO_BOOLS if len(found) == 2 else
                           "Subtraction, the `-` operator, with a bool tensor" + _MASK)


sub = pointwise("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                kernel=_scaled(-1), default_kernel=kernels.subtract, refuses=("add_stub", "bU8"),
                check_bools=refuse_bool, d_self=1, d_other=lambda alpha: -alpha,
                operators="__sub__ __isub__",
                deprecated=("sub(Tensor self, Scalar alpha, Tensor other) -> Tensor",),
                aliases=(
                    "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                    "subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"),
                **_WITH_NUMBERS, doc="The difference input - alpha · other.")


def _rsub_kernel(self: np.ndarray, other: Any, alpha: Any = 1) -> np.ndarray:
    try:
        if type(alpha) is int and alpha == 1:
            return kernels.subtract(other, self)
        return _scaled(-1)(np.asarray(other), self, alpha)
    except ValueError:
        raise broadcast_error(np.shape(other), self.shape) from None


def _check_reversed(self: Tensor, other: Any, *_: Any) -> None:
    """Operands of several types are named in the order of the difference."""
    if isinstance(other, Tensor):
        broadcast_shapes(other._array.shape, self._array.shape)
        result_type([other._array, self._array])


rsub = pointwise("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                 "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                 kernel=_rsub_kernel, default_kernel=_rsub_kernel, check=_check_reversed,
                 refuses=("add_stub", "bU8"), check_bools=refuse_bool, out=False, inplace=False,
                 method=False, d_self=lambda alpha: -alpha, d_other=1, operators="__rsub__",
                 doc="other - alpha · input.")
mul = pointwise("mul.Tensor(Tensor self, Tensor other) -> Tensor",
                "mul.Scalar(Tensor self, Scalar other) -> Tensor",
                kernel=kernels.multiply, wide=True, refuses=(by_one("mul_cpu"), "8"),
                d_self=lambda other: other, d_other=lambda self: self,
                operators="__mul__ __rmul__ __imul__",
                aliases=("multiply.Tensor(Tensor self, Tensor other) -> Tensor",
                         "multiply.Scalar(Tensor self, Scalar other) -> Tensor"),
                **_WITH_NUMBERS, doc="The product.")
div = pointwise("div.Tensor(Tensor self, Tensor other) -> Tensor",
                "div.Scalar(Tensor self, Scalar other) -> Tensor",
                kernel=kernels.divide, d_self=divides_by(lambda other: other),
                d_other=lambda self, other: neg(self / other / other), floating=True, wide=True,
                refuses=(by_one("div_cpu", "div_cpu"), "8"), numbers=True, hidden="Scalar",
                operators="__truediv__ __div__ __itruediv__ __idiv__",
                aliases=("divide.Tensor(Tensor self, Tensor other) -> Tensor",
                         "divide.Scalar(Tensor self, Scalar other) -> Tensor",
                         "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> "
                         "Tensor",
                         "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> "
                         "Tensor",
                         "true_divide.Tensor(Tensor self, Tensor other) -> Tensor",
                         "true_divide.Scalar(Tensor self, Scalar other) -> Tensor"),
                out="Tensor Tensor_mode", doc="""The quotient input / other; with `rounding_mode`
    "floor" or "trunc" a whole number.

    Without a mode integers are divided as floating-point numbers.

    >>> import flambeau
    >>> flambeau.div(flambeau.tensor([-7, 7]), 2, rounding_mode="trunc")
    tensor([-3,  3])
    """)
neg = pointwise("neg(Tensor self) -> Tensor", kernel=kernels.negative, d=-1, operators="__neg__",
                aliases=("negative(Tensor self) -> Tensor",), refuses=("neg_cpu", "bU8"),
                out_type=FOUND_TYPE,
                refused_as={"b": "Negation, the `-` operator, on a bool tensor" + _MASK},
                doc="-input.")
reciprocal = pointwise("reciprocal(Tensor self) -> Tensor", kernel=kernels.reciprocal,
                       floating=True, d=lambda result: neg(result * result), doc="1 / input.")


def reversed_operator(name: str, function: Any, of_tensors: bool = False) -> None:
    """Let Tensor have the method `name`, which calls `function(other, self)`: it says
    NotImplemented to operands that it does not know, and to anything but one operand; that `self`
    is no tensor is an error if it is `of_tensors`, as a slot of a type is."""
    def operator(self: Tensor, other: Any) -> Any:
        return function(other, self)
    operator.__name__, operator.__qualname__ = name, f"Tensor.{name}"

    @functools.wraps(operator)
    def method(self: Tensor, /, *args: Any, **kwargs: Any) -> Any:
        if of_tensors and not isinstance(self, Tensor):
            raise TypeError(no_instance(name, (self,)))
        try:
            return function(args[0], self) if len(args) == 1 and not kwargs \
                else operator(self, *args, **kwargs)
        except TypeError:
            return NotImplemented
    setattr(Tensor, name, method)


for _name in ("__rdiv__", "__rtruediv__"):
    reversed_operator(_name, lambda other, self: self.reciprocal() * other)


@op("positive(Tensor(a) self) -> Tensor(a)", operators="__pos__")
def positive(self: Tensor) -> Tensor:
    """The input itself; what `+x` means."""
    if self._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


# ---- magnitude and sign -------------------------------------------------------------------------

def _refuse_complex(tensor: Tensor) -> None:
    if tensor._array.dtype.kind in "cW":
        raise RuntimeError("In-place abs is not supported for complex tensors.")


# of complex numbers the result is real, and the rule not its own transpose
def _abs_out_type(read: Any, out: Any, found: Any) -> str:
    """What `abs` says of other types of `out=`: moduli may be stored as complex numbers too."""
    own = read[0].dtype
    if not own.is_complex:
        return FOUND_TYPE
    other = out.is_complex and out is not own
    return FOUND_TYPE.replace("{found}", type_name(own)) if other else ""


abs = pointwise("abs(Tensor self) -> Tensor", kernel=kernels.absolute, operators="__abs__",
                aliases=("absolute(Tensor self) -> Tensor",), refuses=("abs_cpu", "bU0"),
                out_type=_abs_out_type,
                vjp=lambda grad, self: grad * sgn(self), inplace_check=_refuse_complex,
                jvp=lambda self_t, self: late_bound.real_part(
                    self_t * late_bound.conjugated(sgn(self))),
                doc="""The absolute value; of complex numbers, the modulus.

    >>> import flambeau
    >>> flambeau.abs(flambeau.tensor([-1.5, 2.0]))
    tensor([1.5000, 2.0000])
    """)
sign = pointwise("sign(Tensor self) -> Tensor", kernel=kernels.sign, d=0, out_type=FOUND_TYPE,
                 refuses=("sign_cpu", "U8"), refused_as={
                     "c": "Unlike NumPy, torch.sign is not intended to support complex numbers. "
                          "Please use torch.sgn instead."},
                 doc="-1, 0 or 1, as the input is negative, zero or positive.")


def _sgn_vjp(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """Only what turns the unit number changes it: the part of `grad` across its direction."""
    if self._array.dtype.kind not in "cW":
        return zeros_like(grad)
    size = abs(self)
    across = grad - late_bound.real_part(grad * late_bound.conjugated(result)) * result
    return late_bound.where(size == 0, 0, across / late_bound.where(size == 0, 1, size))


sgn = pointwise("sgn(Tensor self) -> Tensor", kernel=kernels.sgn, vjp=_sgn_vjp,
                refuses=("sign_cpu", "U8"), out_type=FOUND_TYPE,
                doc="The sign; of complex numbers, input / |input|, and 0 at 0.")


def _copysign_derivative(self: Tensor, result: Tensor) -> Tensor:
    return late_bound.where(self == 0, 0, result / self)


copysign = pointwise("copysign.Tensor(Tensor self, Tensor other) -> Tensor",
                     "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
                     kernel=kernels.copysign, floating=True, d_self=_copysign_derivative, d_other=0,
                     doc="The magnitude of `input` with the sign of `other`.")
nextafter = pointwise("nextafter(Tensor self, Tensor other) -> Tensor", kernel=kernels.nextafter,
                      d_self=lambda self, other: self != other, d_other=0,
                      doc="The next representable number after `input` towards `other`.")

# ---- powers -------------------------------------------------------------------------------------

_SHORT = {1: kernels.positive, 2: kernels.square, 0.5: kernels.sqrt, -0.5: kernels.rsqrt,
          -1: kernels.reciprocal}


def _pow_kernel(self: Any, exponent: Any) -> np.ndarray:
    if isinstance(exponent, np.ndarray):
        if exponent.dtype.kind == "b":
            raise no_kernel("pow", exponent.dtype)
        refuse(exponent, "UW8", "pow")
        return kernels.power(convert(np.asarray(self), exponent.dtype), exponent)
    if exponent not in (0, 1):
        refuse(self, "bUW8", "pow")
    if self.dtype.kind in "bui":
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        exponent = as_element(exponent, self.dtype)
    if self.dtype.kind == "b":                  # to the power of a bool
        return self.copy() if exponent else np.ones_like(self)
    if exponent in _SHORT and (exponent in (1, 2) or self.dtype in FLOATING):
        return _SHORT[exponent](self)
    if exponent == 3:
        return kernels.multiply(kernels.square(self), self) if is_half(self.dtype) else \
            kernels.cube(self)
    if is_half(self.dtype):                 # the exponent is an element too
        exponent = scalar_operand(self, exponent)[1]
    return kernels.power(self, exponent)


def _pow_vjp(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    """exponent · self^(exponent - 1), but zero, not 0 · inf, where the exponent is zero."""
    if isinstance(exponent, Tensor):
        zero, where = exponent == 0, late_bound.where
        return where(zero, 0, grad * conjugate(exponent * pow(self, where(zero, 1, exponent) - 1)))
    if exponent == 0:
        return self.new_zeros(self.shape)
    if type(exponent) is int:       # the numbers that PyTorch's graphs show
        exponent = float(exponent)
    # also where this is `self` or 1: higher derivatives go through it, as PyTorch's do
    return grad * conjugate(times(pow(self, exponent - 1), exponent))


def _is_complex(tensor: Tensor) -> bool:
    return tensor._array.dtype.kind in "cW"


def _pow_exponent(self: Any, exponent: Tensor, result: Tensor) -> Tensor:
    """result · log(self), but zero, not 0 · -inf, where base = 0 and exponent ≥ 0; no complex
    exponent with an imaginary part is."""
    if not isinstance(self, Tensor):
        base, self = self, wrap(convert(np.asarray(self), result._array.dtype))
        if base != 0:
            return result * self.log()
    elif self._array.dtype not in FLOATING or _is_complex(result) != _is_complex(self):
        self = cast(self, result._array.dtype)
    flat = exponent >= 0 if not _is_complex(exponent) else \
        (exponent.imag == 0) & (exponent.real >= 0)
    return late_bound.where((self == 0) & flat, 0, result * self.log())


pow = pointwise("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
                "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
                "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
                kernel=_pow_kernel, raw=True, d_self=_pow_vjp, d_exponent=_pow_exponent,
                operators="__pow__ __ipow__",
                doc="""`input` to the power of `exponent`; either may be a number.

    >>> import flambeau
    >>> flambeau.pow(2, flambeau.tensor([1.0, 3.0]))
    tensor([2., 8.])
    """)
reversed_operator("__rpow__", pow)


def as_number(value: Any, function: str, argument: str, position: int) -> Any:
    """A plain Python number; TypeError if `value` is none."""
    if type(value) in (int, float, bool, complex):
        return value
    if isinstance(value, (np.generic, int, float, complex)):
        kinds: tuple[Any, ...] = (int, float, complex)
        return number_of(value) if isinstance(value, np.generic) else \
            next(kind(value) for kind in kinds if isinstance(value, kind))
    raise TypeError(f"{function}(): argument '{argument}' (position {position}) must be Tensor or "
                    f"Number, not {type_name_of(value)}")


@op("square(Tensor self) -> Tensor", inplace=True, inplace_function=True, overlap="element",
    out_reported_as="pow")
def square(self: Tensor) -> Tensor:
    """The square of each element."""
    return pow(self, 2)


@op("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
    "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    out_reported_as="pow",
    out_type="the output given to float_power has dtype {out} but the operation's result requires "
    "dtype {found}")
def float_power(self: Any, exponent: Any) -> Tensor:
    """`input` to the power of `exponent`, in float64 (or complex128)."""
    is_complex = any(x._array.dtype.kind in "cW" if isinstance(x, Tensor)
                     else isinstance(x, complex) for x in (self, exponent))
    target, number = (_COMPLEX, complex) if is_complex else (_DOUBLE, float)
    return pow(*[number(x) if not isinstance(x, Tensor) else x if x._array.dtype is target
                 else cast(x, target) for x in (self, exponent)])


_DOUBLE, _COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)


@op("float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
    "float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
    function=False, out=False)
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """`float_power`, in place: for float64 and complex128 only."""
    power = exponent if not isinstance(exponent, Tensor) else exponent.new_empty(())
    found = float_power(self.detach().new_empty((0,)), power).dtype
    if found is not self.dtype:
        raise RuntimeError(f"the base given to float_power_ has dtype {type_name(self.dtype)} but "
                           f"the operation's result requires dtype {type_name(found)}")
    return self.pow_(exponent)


rsqrt = pointwise("rsqrt(Tensor self) -> Tensor", kernel=kernels.rsqrt, floating=True,
                  d=lambda result: result * result * result * -0.5, doc="1 / √input.")
hypot = pointwise("hypot(Tensor self, Tensor other) -> Tensor", kernel=kernels.hypot,
                  d_self=lambda self, result: self / result,
                  d_other=lambda other, result: other / result,
                  doc="√(input² + other²), without overflow on the way.")

# ---- of three tensors ---------------------------------------------------------------------------


def together(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors in the type that torch gives an expression over them."""
    first = tensors[0]._array.dtype
    if all(t._array.dtype is first for t in tensors):
        return tensors
    wanted = result_type([t._array for t in tensors]).numpy
    return tuple([t if t._array.dtype == wanted else cast(t, wanted) for t in tensors])


addcmul = pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    deprecated=("addcmul(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",),
    kernel=lambda self, tensor1, tensor2, value, out=None: kernels.addcmul(
        self, tensor1, tensor2, within(self, value), out),
    default_kernel=kernels.addcmul, refuses=("addcmul_cpu_out", "bU8"), d_self=1,
    d_tensor1=lambda tensor2, value: tensor2 * value,
    d_tensor2=lambda tensor1, value: tensor1 * value,
    doc="""input + value · tensor1 · tensor2.

    >>> import flambeau
    >>> one = flambeau.ones(2)
    >>> flambeau.addcmul(one, one * 2, one * 3, value=10)
    tensor([61., 61.])
    """)


def _refuse_integers(self: Tensor, tensor1: Tensor, tensor2: Tensor, *_: Any) -> None:
    if not {tensor1._array.dtype, tensor2._array.dtype} & FLOATING:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release "
            "addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv "
            "behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to("
            "input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float "
            "inputs. The future addcdiv behavior is just the latter implementation: (input + "
            "value * tensor1 / tensor2), for all dtypes.")


addcdiv = pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    deprecated=("addcdiv(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",),
    kernel=lambda self, tensor1, tensor2, value, out=None: kernels.addcdiv(
        self, tensor1, tensor2, within(self, value), out),
    default_kernel=kernels.addcdiv, check=_refuse_integers,
    refuses=("addcdiv_cpu_out", "bBilUW8"), d_self=1,
    d_tensor1=lambda tensor2, value: reciprocal(tensor2) * value,
    d_tensor2=lambda tensor1, tensor2, value: tensor1 * -value / (tensor2 * tensor2),
    doc="input + value · tensor1 / tensor2.")


def _check_lerp(self: Tensor, end: Tensor, weight: Any) -> None:
    for name, other in (("end", end), ("weight", weight)):
        if isinstance(other, Tensor) and other.dtype is not self.dtype and (
                name == "end" or other.ndim):
            raise RuntimeError(f"expected dtype {c_name(self.dtype)} for `{name}` but got dtype "
                               f"{c_name(other.dtype)}")
    if not isinstance(weight, Tensor):
        refuse(self._array, "bBilU8", "lerp_kernel_scalar")
    elif self._array.dtype.char in characters("bBilU8"):    # of 0 dimensions it may be floating
        found = result_type([self._array, weight._array]).numpy
        refuse(np.empty(0, found), "bBilU8", "lerp_kernel_tensor")


lerp = pointwise(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    kernel=lambda self, end, weight, out=None: kernels.lerp(
        self, end, as_element(weight, self.dtype) if type(weight) is complex else weight, out),
    raw=True, check=_check_lerp, refuses=("lerp_kernel_scalar", "bBilU8"),
    out_type=lambda read, out, found: (
        FOUND_TYPE if isinstance(read[-1], Tensor) and read[-1].ndim else ""),
    d_self=lambda weight: 1 - weight, d_end=lambda weight: weight,
    d_weight=lambda self, end: end - self,
    doc="""input + weight · (end - input): `input` at weight 0, `end` at weight 1.

    >>> import flambeau
    >>> flambeau.lerp(flambeau.zeros(2), flambeau.ones(2), 0.25)
    tensor([0.2500, 0.2500])
    """)


def tensor_class_name(tensor: Tensor) -> str:
    """PyTorch's class of tensors of this type, which error messages quote."""
    return type_label(tensor.dtype, tensor.is_meta)


# ---- rectified ----------------------------------------------------------------------------------

relu = pointwise("relu(Tensor self) -> Tensor", kernel=kernels.relu,
                 vjp=lambda grad, result: threshold_backward(grad, result, 0),
                 refuses=("clamp_min_scalar_cpu", "U8"), out=False,
                 refused_as={"b": "Boolean inputs not supported for relu",
                             "c": "clamp is not supported for complex types"}, doc="max(0, input).")
threshold_backward = pointwise(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    kernel=kernels.threshold_backward,
    vjp=lambda grad, self, threshold, needs: (
        threshold_backward(grad, self, threshold) if needs[0] else None,
        zeros_like(grad) if needs[1] else None),
    method=False, inplace=False)

__all__ = ["abs", "add", "addcdiv", "addcmul", "div", "lerp", "mul", "neg", "pow", "reciprocal",
           "rsub", "sgn", "sign", "square", "sub"]
