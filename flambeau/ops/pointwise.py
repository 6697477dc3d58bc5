"""Arithmetic element by element: sums, products, quotients, powers, signs.

A derivative is the formula `d`: what a change of the argument is multiplied by.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import kernels
from flambeau._call_guards import method as as_method
from flambeau._places import bump
from flambeau.core import dtypes, fast, overrides
from flambeau.core.dtypes import FLOATING
from flambeau.core.graph import next_order
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.op import (
    SCALARS,
    checked_arguments,
    composite,
    over,
    pointwise,
    primitive,
    public,
    publish,
)
from flambeau.core.promotion import (
    convert,
    is_half,
    result_type,
    scalar_cache,
    scalar_operand,
    type_name,
)
from flambeau.core.tensor import Tensor, basis, plain, wrap
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import numbers_between, stored, with_keywords, wrong_types
from flambeau.ops.node_names import number_nodes, rename, times
from flambeau.ops.overlap import share_memory

# ---- sums, products, quotients ------------------------------------------------------------------

add = pointwise("add", kernels.add, d_self=1, d_other=1, dunder="__add__ __radd__", numbers="any",
                doc="""The sum of two tensors, or of a tensor and a number; `other` times `alpha`.

    >>> import flambeau
    >>> flambeau.add(flambeau.tensor([1.0, 2.0]), 10, alpha=2)
    tensor([21., 22.])
    """)
sub = pointwise("sub", kernels.subtract, d_self=1, d_other=-1, numbers="any",
                aliases=("subtract",), doc="The difference input - alpha · other.")
mul = pointwise("mul", kernels.multiply, d_self=lambda other: other, d_other=lambda self: self,
                dunder="__mul__ __rmul__", aliases=("multiply",), numbers="any", wide=True,
                doc="The product.")
true_divide = pointwise(
    "div", kernels.divide, floating=True, d_self=over(lambda other: other),
    d_other=lambda self, other: neg(self / other / other), dunder="__truediv__ __div__",
    aliases=("divide", "true_divide"), numbers="any", wide=True)
neg = pointwise("neg", kernels.negative, d=-1, dunder="__neg__", aliases=("negative",),
                doc="-input.")
reciprocal = pointwise("reciprocal", kernels.reciprocal, floating=True,
                       d=lambda result: neg(result * result), doc="1 / input.")


_WIDE = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def _scaled(op: Any, sign: int) -> Any:
    """`op` with an `alpha`, as one op: the sum is rounded once, alpha as an element would be."""
    def kernel(self: np.ndarray, other: np.ndarray, alpha: Any) -> np.ndarray:
        return kernels.axpy(self, other, convert(np.asarray(sign * alpha), self.dtype))

    @primitive(kernel, tensors=("self", "other"), kind="pointwise", node_name=op.node_name,
               name=f"{op.name}_scaled", method=False, namespace=None, d_self=1,
               d_other=lambda alpha: sign * alpha)
    def scaled(input: Any, other: Any, alpha: Any) -> Any:
        input, other = number_first(input, other), number_first(other, input)
        return *together(input, other), alpha
    return scaled


def scaled_second(function: Any, sign: int) -> Any:
    """`add` and `sub` as users call them: with `alpha`, which multiplies the second argument."""
    op = function.op
    scaled = _scaled(op, sign)
    scaled_inplace = basis.make_inplace(scaled.op)

    def apart(input: Any, other: Any) -> bool:
        """Is the product to be an op of its own? For levels, subclasses, and bools."""
        return bool(interceptors) or not all(
            type(x) in SCALARS or (type(x) in plain and x._array.dtype.kind != "b")
            for x in (input, other))
    check = refuse_bool if "?" in op.reject else lambda *operands: None

    def common(input: Any, other: Any, alpha: Any) -> Any:
        """alpha as an element of both, if they are of one type and nothing is to be recorded."""
        if interceptors or type(input) not in plain or type(other) not in plain \
                or type(alpha) not in (float, int):
            return None
        d = input._array.dtype
        if d is not other._array.dtype or d not in _WIDE or (grad_enabled() and (
                input._edge is not None or other._edge is not None)):
            return None
        factor = scalar_cache.get((d, sign * alpha))
        return scalar_operand(input._array, sign * alpha)[1] if factor is None else factor

    def call(input: Any, other: Any, *earlier: Any, alpha: Any = 1, out: Any = None) -> Any:
        if len(earlier) == 1 and {type(other), type(earlier[0])} <= SCALARS:
            return call(input, earlier[0], alpha=other, out=out)
        if earlier:                         # the deprecated `add(input, alpha, other)`
            return with_keywords(call, ("alpha",), (input, other, *earlier), {"out": out})
        check(input, other)
        if type(alpha) is int and alpha == 1:
            return function(input, other) if out is None else function(input, other, out=out)
        factor = common(input, other, alpha) if out is None else None
        if factor is not None:
            try:
                return wrap(kernels.axpy(input._array, other._array, factor))
            except ValueError:
                pass                        # the general call says why
        if interceptors or type(input) not in plain:
            kwargs = {"alpha": alpha} if out is None else {"alpha": alpha, "out": out}
            if overrides.has_torch_function((input, other)):
                return overrides.handle_torch_function(op.published, (input, other), input,
                                                       other, **kwargs)
        alpha = check_alpha(input, other, alpha)
        if apart(input, other):
            return function(input, _times(input, other, alpha), out=out)
        return scaled(input, other, alpha) if out is None else \
            basis.into(out, op, scaled(input, other, alpha), (input, other))

    def write(input: Any, other: Any, *earlier: Any, alpha: Any = 1) -> Any:
        inplace = op.inplace_op.function
        if earlier:
            return with_keywords(write, ("alpha",), (input, other, *earlier), {})
        check(input, other)
        if type(alpha) is int and alpha == 1:
            return inplace(input, other)
        factor = common(input, other, alpha)
        if factor is not None and input._array.shape == other._array.shape \
                and input._array.flags.c_contiguous and not input._inference \
                and not share_memory(input._array, other._array):
            kernels.axpy(input._array, other._array, factor, input._array)
            bump(input)
            return input
        alpha = check_alpha(input, other, alpha)
        if apart(input, other):
            return inplace(input, _times(input, other, alpha))
        return scaled_inplace(input, other, alpha)

    call.__name__ = op.name
    write.op, write.__name__ = op.inplace_op, f"{op.name}_"
    return (fast.callable_of("pointwise", op, call, op.kernel),
            fast.callable_of("inplace", op.inplace_op, write, op.kernel))


def _times(input: Any, other: Any, alpha: Any) -> Any:
    """alpha · other in the type of the sum with `input`."""
    if not isinstance(other, Tensor):
        return other * alpha
    if isinstance(input, Tensor) and input._array.dtype is not other._array.dtype:
        wanted = result_type([input._array, other._array], []).numpy
        if wanted != other._array.dtype:
            other = basis.cast(other, wanted)
    return mul(other, alpha)


def refuse_bool(*operands: Any) -> None:
    """Raise if either operand of a subtraction is boolean."""
    found = [x for x in operands if type(x) is bool
             or (isinstance(x, Tensor) and x._array.dtype.kind == "b")]
    if found:
        raise RuntimeError(_TWO_BOOLS if len(found) == 2 else
                           "Subtraction, the `-` operator, with a bool tensor" + _MASK)


def check_alpha(input: Any, other: Any, alpha: Any) -> Any:
    """`alpha` as a number that fits the type of the sum; raises if it does not."""
    if isinstance(alpha, Tensor):
        alpha = alpha.item()
    kind = result_type([x._array for x in (input, other) if isinstance(x, Tensor)],
                       [x for x in (input, other) if not isinstance(x, Tensor)]).kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and kind in "bui":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating "
                           "point number.")
    if isinstance(alpha, complex) and kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex "
                           "number.")
    return bool(alpha) if kind == "b" else alpha


_MASK = " is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` " \
    "operator instead."
_TWO_BOOLS = "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` " \
    "or `logical_xor()` operator instead."
for _op, _sign, _aliases in ((add, 1, ()), (sub, -1, ("subtract",))):
    _call, _write = scaled_second(_op, _sign)
    _op.op.inplace_op.published = _write
    publish(_op.op, _call, True, _aliases)
    for _name in (_op.op.name, *_aliases):
        setattr(Tensor, f"{_name}_", as_method(_write))

sub.op.refusal = {"b": _TWO_BOOLS}
neg.op.refusal = {"b": "Negation, the `-` operator, on a bool tensor" + _MASK}


_from_number = pointwise("rsub", lambda x, y, *out: kernels.subtract(y, x, *out), d_self=-1,
                         d_other=1, method=False, inplace=False, namespace=None,
                         node_name="RsubBackward1")
_from_number.op.Backward.differentiated = (0,)


def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha · input."""
    if type(other) in (int, float, complex) and type(alpha) is int and alpha == 1:
        refuse_bool(input)
        return _from_number(input, other)
    since = next_order()
    result = sub.op.published(other, input, alpha=alpha)
    rename(result, f"RsubBackward{not isinstance(other, Tensor):d}", since)
    return result


def number_first(value: Any, tensor: Tensor) -> Any:
    """A Python number as the 0-d tensor that promotes with `tensor` as the number would."""
    if isinstance(value, Tensor):
        return value
    wanted = result_type([tensor._array], [as_number(value, "op", "self", 1)]).numpy
    return wrap(convert(np.asarray(value), wanted))


def operator(function: Any) -> Any:
    """`function` as a method for an operator: says NotImplemented to operands it does not know."""
    def method(self: Tensor, other: Any) -> Any:
        try:
            return function(self, other)
        except TypeError:
            if isinstance(other, (Tensor, int, float, complex, np.generic)):
                raise
            return NotImplemented
    method.__name__ = f"__{function.__name__}__"
    return method


public["torch"]["rsub"] = rsub = checked_arguments(rsub, bound=False)
Tensor.__rsub__ = fast.callable_of("pointwise", _from_number.op, operator(rsub),
                                   _from_number.op.kernel)
_from_number.op.published = Tensor.__rsub__
Tensor.__rtruediv__ = Tensor.__rdiv__ = lambda self, other: mul(reciprocal(self), other)


def _difference(self: Tensor, other: Any) -> Tensor:
    """The difference self - other."""
    return sub.op.published(self, other)


Tensor.__sub__ = as_method(
    fast.callable_of("pointwise", sub.op, _difference, sub.op.kernel), True)
Tensor.__isub__ = as_method(Tensor.sub_, True)
Tensor.__iadd__ = as_method(add.op.inplace_op.function, True)
Tensor.__imul__ = as_method(mul.op.inplace_op.function, True)
Tensor.__itruediv__ = Tensor.__idiv__ = as_method(true_divide.op.inplace_op.function, True)


@composite(method=True)
def positive(input: Tensor) -> Tensor:
    """The input itself; what `+x` means."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


Tensor.__pos__ = positive

# ---- magnitude and sign -------------------------------------------------------------------------

abs = pointwise("abs", kernels.absolute, vjp=lambda grad, self: grad * sgn(self), dunder="__abs__",
                aliases=("absolute",), doc="""The absolute value; of complex numbers, the modulus.

    >>> import flambeau
    >>> flambeau.abs(flambeau.tensor([-1.5, 2.0]))
    tensor([1.5000, 2.0000])
    """)
_abs_in_place = Tensor.abs_


def _abs_(self: Tensor) -> Tensor:
    """The absolute value, in place; not of complex numbers."""
    if self._array.dtype.kind in "cW":
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return _abs_in_place(self)


Tensor.abs_ = Tensor.absolute_ = _abs_
# of complex numbers the result is real, and the rule not its own transpose
abs.op.jvp_rule = lambda self_t, self: basis.real(self_t * basis.conj(sgn(self)))
sign = pointwise("sign", kernels.sign, d=0,
                 doc="-1, 0 or 1, as the input is negative, zero or positive.")


def _sgn_vjp(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """Only what turns the unit number changes it: the part of `grad` across its direction."""
    if self._array.dtype.kind not in "cW":
        return basis.zeros_like(grad)
    size = abs(self)
    across = grad - basis.real(grad * basis.conj(result)) * result
    return basis.where(size == 0, 0, across / basis.where(size == 0, 1, size))


sign.op.refusal = {"c": "Unlike NumPy, torch.sign is not intended to support complex numbers. "
                        "Please use torch.sgn instead."}
sgn = pointwise("sgn", kernels.sgn, vjp=_sgn_vjp,
                doc="The sign; of complex numbers, input / |input|, and 0 at 0.")


def _copysign_slope(self: Tensor, result: Tensor) -> Tensor:
    return basis.where(self == 0, 0, result / self)


copysign = pointwise("copysign", kernels.copysign, floating=True, d_self=_copysign_slope, d_other=0,
                     doc="The magnitude of `input` with the sign of `other`.")
copysign = number_nodes(copysign.op, "CopysignBackward1")
nextafter = pointwise("nextafter", kernels.nextafter, numbers="", d_other=0,
                      d_self=lambda self, other: self != other,
                      doc="The next representable number after `input` towards `other`.")

# ---- powers -------------------------------------------------------------------------------------

_SHORT = {1: kernels.positive, 2: kernels.square, 0.5: kernels.sqrt, -0.5: kernels.rsqrt,
          -1: kernels.reciprocal}


def _pow_kernel(self: np.ndarray, exponent: Any) -> np.ndarray:
    if self.dtype.kind == "b":                  # to the power of a bool
        return self.copy() if exponent else np.ones_like(self)
    if exponent in _SHORT and (exponent in (1, 2) or self.dtype in FLOATING):
        return _SHORT[exponent](self)
    if exponent == 3:
        return kernels.multiply(kernels.square(self), self)
    if is_half(self.dtype):                 # the exponent is an element too
        exponent = scalar_operand(self, exponent)[1]
    return kernels.power(self, exponent)


def _pow_slope(self: Tensor, exponent: Any) -> Tensor:
    if exponent == 0:
        return basis.zeros_like(self)
    # also where this is `self` or 1: higher derivatives go through it, as PyTorch's do
    return times(pow(self, exponent - 1), exponent)


@primitive(_pow_kernel, kind="pointwise", d_self=_pow_slope, node_name="PowBackward0",
           method=False, namespace=None)
def pow_number(input: Tensor, exponent: Any) -> Any:
    """A tensor to the power of a Python number."""
    if input._array.dtype in FLOATING and type(exponent) is not complex:
        return input, exponent
    if type(exponent) is int and exponent < 0 and input._array.dtype.kind in "bui":
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    wanted = result_type([input._array], [exponent])
    return _as_type(input, wanted), stored(exponent, wanted.numpy) if wanted.kind in "ui" \
        else exponent


def _as_type(input: Tensor, wanted: dtypes.dtype) -> Tensor:
    return basis.cast(input, wanted.numpy) if input._array.dtype != wanted.numpy else input


def _pow_base(self: Tensor, exponent: Tensor) -> Tensor:
    """exponent · self^(exponent - 1), but zero, not 0 · inf, where the exponent is zero."""
    zero = exponent == 0
    return basis.where(zero, 0, exponent * pow(self, basis.where(zero, 1, exponent) - 1))


def _pow_exponent(self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    """result · log(self), but zero, not 0 · -inf, where base = 0 and exponent ≥ 0; no complex
    exponent with an imaginary part is."""
    if exponent._array.dtype.kind in "cW":
        flat = (exponent.imag == 0) & (exponent.real >= 0)
    else:
        flat = exponent >= 0
    return basis.where((self == 0) & flat, 0, result * basis.log(self))


_ANY_NUMBER = "(Tensor input, Tensor exponent); (Number self, Tensor exponent); (Tensor input, " \
    "Number exponent)"
_POW = {"tensors": ("self", "exponent"), "kind": "pointwise", "method": False, "namespace": None}


@primitive(lambda self, exponent: kernels.power(self, exponent), node_name="PowBackward1",
           d_self=_pow_base, d_exponent=_pow_exponent, **_POW)
def pow_tensors(input: Tensor, exponent: Tensor) -> Any:
    """A tensor to the power of a tensor."""
    if input._array.dtype is exponent._array.dtype and input._array.dtype in FLOATING:
        return input, exponent
    wanted = result_type([input._array, exponent._array])
    if wanted is dtypes.bool_:
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    return _as_type(input, wanted), _as_type(exponent, wanted)


@primitive(lambda self, exponent: kernels.power(self, exponent), node_name="PowBackward2",
           d_exponent=_pow_exponent, **_POW)
def pow_of_number(base: Any, exponent: Tensor) -> Any:
    """A Python number to the power of a tensor."""
    wanted = result_type([exponent._array], [base])
    return wrap(convert(np.asarray(base), wanted.numpy)), _as_type(exponent, wanted)


@composite(method=True, inplace=True)
def pow(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """`input` to the power of `exponent`; either may be a number.

    >>> import flambeau
    >>> flambeau.pow(2, flambeau.tensor([1.0, 3.0]))
    tensor([2., 8.])
    """
    if isinstance(input, Tensor):
        if isinstance(exponent, Tensor):
            result = pow_tensors(input, exponent)
        else:
            result = pow_number(input, as_number(exponent, "pow", "exponent", 2))
    elif isinstance(exponent, Tensor):
        result = pow_of_number(as_number(input, "pow", "self", 1), exponent)
    else:
        raise wrong_types("pow", (input, exponent), _ANY_NUMBER)
    return result if out is None else basis.into(out, pow.op, result, (input, exponent))


def as_number(value: Any, function: str, argument: str, position: int) -> Any:
    """A plain Python number; TypeError if `value` is none."""
    if type(value) in (int, float, bool, complex):
        return value
    if isinstance(value, (np.generic, int, float, complex)):
        return value.item() if isinstance(value, np.generic) else \
            next(kind(value) for kind in (int, float, complex) if isinstance(value, kind))
    raise TypeError(f"{function}(): argument '{argument}' (position {position}) must be Tensor or "
                    f"Number, not {type(value).__name__}")


Tensor.__pow__ = operator(pow)
Tensor.__rpow__ = operator(lambda self, other: pow(other, self))
Tensor.__ipow__ = Tensor.pow_


@composite(method=True, inplace=True)
def square(input: Tensor, *, out: Any = None) -> Tensor:
    """The square of each element."""
    refuse(input._array, "U", "pow")
    result = pow_number(input, 2)
    return result if out is None else basis.into(out, square.op, result, (input,))


@composite(method=True)
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """`input` to the power of `exponent`, in float64 (or complex128)."""
    kinds = [x._array.dtype.kind if isinstance(x, Tensor) else np.asarray(x).dtype.kind
             for x in (input, exponent)]
    if set(kinds) & set("OUS") or not (isinstance(input, Tensor) or isinstance(exponent, Tensor)):
        raise wrong_types("float_power", (input, exponent), _ANY_NUMBER)
    target = np.dtype("c16" if {"c", "W"}.intersection(kinds) else "f8")
    if out is not None and out._array.dtype != target:
        raise RuntimeError("the output given to float_power has dtype "
                           f"{type_name(out.dtype)} but the operation's result requires dtype "
                           f"{'ComplexDouble' if target.kind == 'c' else 'Double'}")
    number = complex if target.kind in "cW" else float
    pair = [basis.cast(x, target) if isinstance(x, Tensor) else number(x)
            for x in (input, exponent)]
    return pow(*pair, out=out)


def _float_power_(self: Tensor, exponent: Any) -> Tensor:
    """`float_power`, in place: for float64 and complex128 only."""
    result = float_power(self, exponent)
    if result.dtype is not self.dtype:
        raise RuntimeError(f"the base given to float_power_ has dtype {type_name(self.dtype)} but "
                           f"the operation's result requires dtype {type_name(result.dtype)}")
    return self.pow_(exponent)


Tensor.float_power_ = checked_arguments(_float_power_, name="float_power_")

rsqrt = pointwise("rsqrt", kernels.rsqrt, floating=True, d=lambda result: result * result * result
                  * -0.5, doc="1 / √input.")
hypot = pointwise("hypot", kernels.hypot, numbers="", d_self=lambda self, result: self / result,
                  d_other=lambda other, result: other / result,
                  doc="√(input² + other²), without overflow on the way.")

# ---- of three tensors ---------------------------------------------------------------------------


def together(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors in the type that torch gives an expression over them."""
    first = tensors[0]._array.dtype
    if all(t._array.dtype is first for t in tensors):
        return tensors
    wanted = result_type([t._array for t in tensors]).numpy
    return tuple([t if t._array.dtype == wanted else basis.cast(t, wanted) for t in tensors])


@primitive(lambda self, tensor1, tensor2, value: kernels.addcmul(self, tensor1, tensor2, value),
           tensors=("self", "tensor1", "tensor2"), kind="pointwise", inplace=True, d_self=1,
           d_tensor1=lambda tensor2, value: tensor2 * value,
           d_tensor2=lambda tensor1, value: tensor1 * value)
@numbers_between("value")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Any:
    """input + value · tensor1 · tensor2.

    >>> import flambeau
    >>> one = flambeau.ones(2)
    >>> flambeau.addcmul(one, one * 2, one * 3, value=10)
    tensor([61., 61.])
    """
    tensors = together(input, tensor1, tensor2)
    return *tensors, int(value) if tensors[0]._array.dtype.kind in "bui" else value


@primitive(lambda self, tensor1, tensor2, value: kernels.addcdiv(self, tensor1, tensor2, value),
           tensors=("self", "tensor1", "tensor2"), kind="pointwise", inplace=True, d_self=1,
           d_tensor1=lambda tensor2, value: reciprocal(tensor2) * value,
           d_tensor2=lambda tensor1, tensor2, value: tensor1 * -value / (tensor2 * tensor2))
@numbers_between("value")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Any:
    """input + value · tensor1 / tensor2."""
    if not {tensor1._array.dtype, tensor2._array.dtype} & FLOATING:
        raise RuntimeError("Integer division with addcdiv is no longer supported: convert tensor1 "
                           "and tensor2 to a floating type first")
    return *together(input, tensor1, tensor2), value


@primitive(lambda self, end, weight: kernels.lerp(self, end, weight), tensors=("self", "end"),
           kind="pointwise", node_name="LerpBackward0", method=False, namespace=None,
           d_self=lambda weight: 1 - weight, d_end=lambda weight: weight)
def _lerp_number(input: Tensor, end: Tensor, weight: Any) -> Any:
    return input, end, weight


@primitive(lambda self, end, weight: kernels.lerp(self, end, weight),
           tensors=("self", "end", "weight"), kind="pointwise", node_name="LerpBackward1",
           method=False, namespace=None, d_self=lambda weight: 1 - weight,
           d_end=lambda weight: weight, d_weight=lambda self, end: end - self)
def _lerp_tensor(input: Tensor, end: Tensor, weight: Tensor) -> Any:
    return input, end, weight


@composite(method=True, inplace=True)
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Any = None) -> Tensor:
    """input + weight · (end - input): `input` at weight 0, `end` at weight 1.

    >>> import flambeau
    >>> flambeau.lerp(flambeau.zeros(2), flambeau.ones(2), 0.25)
    tensor([0.2500, 0.2500])
    """
    if type(weight) is complex:
        weight = stored(weight, result_type([input._array, end._array]).numpy)
    for name, other in (("end", end), ("weight", weight)):
        if isinstance(other, Tensor) and other.dtype is not input.dtype:
            raise RuntimeError(f"expected dtype {c_name(input)} for `{name}` but got dtype "
                               f"{c_name(other)}")
    if input._array.dtype not in FLOATING:
        raise NotImplementedError(
            f"\"lerp_kernel_scalar\" not implemented for '{type_name(input.dtype)}'")
    result = (_lerp_tensor if isinstance(weight, Tensor) else _lerp_number)(input, end, weight)
    return result if out is None else basis.into(out, lerp.op, result, (input, end, weight))


_C_NAMES = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int",
            "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int16": "short int",
            "int8": "signed char", "uint8": "unsigned char", "complex64": "c10::complex<float>",
            "complex128": "c10::complex<double>"}


def c_name(tensor: Tensor) -> str:
    """The C++ name of its dtype, which error messages quote."""
    return _C_NAMES.get(tensor.dtype.name, tensor.dtype.name)


def class_of(tensor: Tensor) -> str:
    """PyTorch's class of tensors of this type, which error messages quote."""
    name = type_name(tensor.dtype)
    recent = name in ("Bool", "BFloat16") or name.startswith(("UInt", "Float8", "Complex"))
    return f"CPU{name}Type" if recent else f"torch.{name}Tensor"


# ---- rectified ----------------------------------------------------------------------------------

relu = pointwise("relu", kernels.relu, vjp=lambda grad, result: threshold_backward(grad, result),
                 doc="max(0, input).")
relu.op.refusal = {"b": "Boolean inputs not supported for relu",
                   "c": "clamp is not supported for complex types"}
threshold_backward = pointwise(
    "threshold_backward", kernels.relu_backward, vjp=lambda grad, other, needs: (
        threshold_backward(grad, other) if needs[0] else None, None),
    tensors=("self", "other"), method=False, inplace=False)

basis.add, basis.mul, basis.div, basis.neg = add, mul, true_divide, neg
__all__ = ["abs", "add", "addcdiv", "addcmul", "lerp", "mul", "neg", "pow", "reciprocal", "rsub",
           "sgn", "sign", "square", "sub", "true_divide"]
