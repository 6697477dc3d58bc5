"""Pointwise kernels in NumPy: what runs without a compiler, and what the native ones must equal.

A kernel is called ``k(x[, y[, z]][, out])`` with arrays of one dtype, or Python numbers, which
take the arrays' dtype. It returns an array, of that dtype unless its declaration says otherwise.
`pointwise` does what all of them share; a body is the mathematics, on arrays. float16 and
bfloat16 are computed in float32, complex32 in complex64, and rounded once.
"""

import functools
import math

import numpy as np

from flambeau.kernels._quiet import quiet

SCALARS = (bool, int, float, complex)
KINDS = {"b": "b", "i": "i", "u": "i", "f": "f", "V": "f", "c": "c", "W": "W"}
# ml_dtypes' floats are "V" and its complex32 "W", for which PyTorch has few kernels


def is_reduced(dtype):
    """Whether arithmetic on `dtype` is done in float32: float16 and the types of ml_dtypes."""
    return dtype.char == "e" or (dtype.kind in "Vf" and dtype.isbuiltin == 2)


def kind_of(dtype):
    """``b``, ``i``, ``f``, ``8`` for float8, ``c``, ``W`` for complex32; None for no number."""
    if dtype.isbuiltin == 2 and dtype.itemsize == 1:
        return "8"
    return KINDS.get(dtype.kind, "f" if dtype.isbuiltin == 2 else None)


def compute_dtype(dtype):
    """What arithmetic on `dtype` is done in: a wider type for narrow ones."""
    if dtype.kind == "W":
        return np.dtype(np.complex64)
    return np.dtype(np.float32) if is_reduced(dtype) else dtype


def real_dtype(dtype):
    """The dtype of the parts of a complex `dtype`; others are returned as they are."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind in "cW" else dtype


def as_dtype(value, dtype):
    """A Python number as an array of `dtype`, wrapped around as C does where it does not fit."""
    if dtype.kind in "iu" and isinstance(value, (int, float)):
        if isinstance(value, float):
            value = int(value) if math.isfinite(value) else 0
        return np.asarray(value & (256**dtype.itemsize - 1), f"u{dtype.itemsize}").view(dtype)
    return np.asarray(value).astype(dtype)


def rounding_once(kernel):
    """A kernel of two operands that also takes a number in float32 beside a half type's array."""

    @functools.wraps(kernel, ("__doc__",), ())
    def run(x, y, *out):
        if x.dtype == y.dtype:
            return kernel(x, y, *out)
        half = x.dtype if y.dtype == np.float32 else y.dtype
        return kernel(x.astype(np.float32), y.astype(np.float32), *out).astype(half)

    return run


# What messages call dtypes, where that is not their name in capitals.
TYPE_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "complex32": "ComplexHalf",
}  # fmt: skip


def type_title(dtype):
    """What messages call a dtype, of NumPy or of torch."""
    name = dtype.name
    return TYPE_NAMES.get(name) or name.replace("uint", "UInt").replace("float", "Float")


class NoKernel(TypeError, NotImplementedError):
    """There is no kernel for a dtype: callers know it as a TypeError, users as torch's error."""


NoKernel.__name__ = NoKernel.__qualname__ = "NotImplementedError"  # in tracebacks
NoKernel.__module__ = "builtins"


def no_kernel(name, dtype):
    """What to raise where the kernel of that name does not take a dtype."""
    return NoKernel(f"\"{name}_cpu\" not implemented for '{type_title(dtype)}'")


def pointwise(kinds, returns=None, key=0, stepwise=False):
    """Declare a kernel for the dtypes of `kinds`; `returns` is None (the same), bool or "real".

    `key` is the first operand that has the common dtype (`where` has a condition before it).
    Narrow floats are computed in float32; if `stepwise`, in their own type.
    """

    def declare(body):
        parameters = body.__code__.co_varnames[: body.__code__.co_argcount]
        count, defaults = len(parameters), body.__defaults__ or ()
        silent = quiet(body)

        @functools.wraps(body)
        def kernel(*args, out=None):
            if len(args) > count:
                *args, out = args
            args = [*args, *defaults[len(defaults) + len(args) - count :]]
            if len(args) != count:
                raise TypeError(f"{body.__name__}: expected {count} operands, got {len(args)}")
            dtype = next((a.dtype for a in args[key:] if not isinstance(a, SCALARS)), None)
            if dtype is None:
                args = [np.asarray(a) for a in args]
                dtype = np.result_type(*args[key:])
            if kind_of(dtype) not in tuple(kinds):
                raise no_kernel(body.__name__, dtype)
            steps = stepwise or (dtype.kind == "W" and count > 2)  # as complex<Half> does in C++
            compute = dtype if steps else compute_dtype(dtype)
            args = [
                as_dtype(a, compute) if isinstance(a, SCALARS)
                else a if i < key or a.dtype == compute
                else silent_astype(a, compute)
                for i, a in enumerate(args)
            ]  # fmt: skip
            result = silent(*args)
            want = {None: dtype, "real": real_dtype(dtype), bool: np.dtype(bool)}[returns]
            if result.dtype != want:
                result = silent_astype(result, want)
            if out is None:
                return np.asarray(result) if isinstance(result, np.generic) else result
            if result.ndim > out.ndim:  # which NumPy would store, where the first extents are 1
                raise ValueError("the result does not fit the shape of out")
            quiet(np.copyto)(out, result, "unsafe")
            return out

        kernel.nin, kernel.kinds, kernel.returns = count, kinds, returns
        return kernel

    return declare


silent_astype = quiet(lambda x, dtype: x.astype(dtype))


def check_divisor(x):
    """Raise what an integer division by zero raises, if `x` holds a zero."""
    if x.dtype.kind in "iu" and not np.all(x):
        raise RuntimeError("ZeroDivisionError")


def _special(name):
    """A function of scipy.special where SciPy is installed, else ours of that name."""
    try:
        import scipy.special
    except ImportError:
        from flambeau.kernels.pointwise import special_functions

        return special_functions.find(name)
    return getattr(scipy.special, name)


def _rename(kernel, name):
    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def _unary(function, kinds, returns=None):
    def body(x):
        return function(x)

    return pointwise(kinds, returns)(_rename(body, function.__name__))


def _binary(function, kinds, returns=None):
    def body(x, y):
        return function(x, y)

    return pointwise(kinds, returns)(_rename(body, function.__name__))


# ---- arithmetic ---------------------------------------------------------------------------------

add = _binary(np.add, "bifcW")
subtract = _binary(np.subtract, "ifcW")
multiply = _binary(np.multiply, "bifcW8")
fmin = _binary(np.fmin, "bif")
fmax = _binary(np.fmax, "bif")
minimum = _binary(np.minimum, "bif")
maximum = _binary(np.maximum, "bif")
negative = _unary(np.negative, "ifcW")
positive = _unary(np.positive, "ifcW")
square = _unary(np.square, "ifc")
absolute = _unary(np.absolute, "ifcW8", "real")


def _conjugate(x):
    return x.copy() if x.dtype.kind == "b" else np.conjugate(x)


conj = _unary(_conjugate, "bifcW8")


@pointwise("fc")
def divide(x, y):
    if x.dtype.kind != "c":
        return np.divide(x, y)
    zero = (y == 0) & ~np.isnan(x)  # NumPy gives NaN + NaN i where the parts are ±inf or NaN
    parts = np.empty(np.broadcast(x, y).shape, x.dtype)
    parts.real, parts.imag = np.divide(x.real, np.abs(y)), np.divide(x.imag, np.abs(y))
    return np.where(zero, parts, np.divide(x, y))


@pointwise("fc")
def reciprocal(x):
    return np.divide(np.ones((), x.dtype), x)


@pointwise("if")
def floor_divide(x, y):
    if x.dtype.kind in "iu":
        check_divisor(y)
        return np.floor_divide(x, y)
    remainder = np.fmod(x, y)
    quotient = (x - remainder) / y
    quotient = quotient - ((remainder != 0) & ((y < 0) != (remainder < 0)))
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + 1, whole)
    whole = np.where(quotient == 0, np.copysign(np.zeros((), x.dtype), x / y), whole)
    return np.where(y == 0, x / y, whole).astype(x.dtype)


@pointwise("if")
def remainder(x, y):
    if x.dtype.kind in "iu":
        check_divisor(y)
        return np.remainder(x, y)
    r = np.fmod(x, y)
    return np.where((r != 0) & ((y < 0) != (r < 0)), r + y, r)


@pointwise("if")
def fmod(x, y):
    check_divisor(y)
    return np.fmod(x, y)


@pointwise("ifc")
def power(x, y):
    if x.dtype.kind not in "iu":
        return np.power(x, y)
    if x.dtype.kind == "u":
        return np.power(x, y)
    negative_power = np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (y & 1), 0))
    return np.where(y < 0, negative_power, np.power(x, np.where(y < 0, 0, y))).astype(x.dtype)


@pointwise("bif")
def sign(x):
    return x if x.dtype == bool else (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


@pointwise("bifcW")
def sgn(x):
    if x.dtype.kind != "c":
        return x if x.dtype == bool else (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)
    return np.where(x == 0, 0, x / np.abs(x)).astype(x.dtype)


@pointwise("fc")
def rsqrt(x):
    return np.divide(np.ones((), x.dtype), np.sqrt(x))


@pointwise("f")
def frac(x):
    return x - np.trunc(x)


@pointwise("bif")
def clip(x, lo, hi):
    return np.minimum(np.maximum(x, lo), hi)


@pointwise("fc")
def lerp(x, y, weight):
    near = np.abs(weight) < 0.5
    return np.where(near, x + weight * (y - x), y - (y - x) * (1 - weight)).astype(x.dtype)


@pointwise("ifcW")
def axpy(x, y, alpha):
    """x + alpha * y"""
    return x + alpha * y


@pointwise("ifcW")
def addcmul(x, y, z, value=1):
    """x + value * y * z"""
    return x + value * y * z


@pointwise("fc")
def addcdiv(x, y, z, value=1):
    """x + value * y / z"""
    return x + value * y / z


@pointwise("bifcW8", key=1)
def where(condition, x, y):
    return np.where(condition, x, y)


# ---- integers -----------------------------------------------------------------------------------

bitwise_and = _binary(np.bitwise_and, "bi")
bitwise_or = _binary(np.bitwise_or, "bi")
bitwise_xor = _binary(np.bitwise_xor, "bi")
bitwise_not = pointwise("bi")(_rename(lambda x: np.invert(x), "bitwise_not"))


def _out_of_range(y):
    bits = 8 * y.dtype.itemsize
    return (y < 0) | (y >= bits), bits


@pointwise("i")
def left_shift(x, y):
    outside, _ = _out_of_range(y)
    return np.where(outside, 0, np.left_shift(x, np.where(outside, 0, y))).astype(x.dtype)


@pointwise("i")
def right_shift(x, y):
    outside, bits = _out_of_range(y)
    if x.dtype.kind == "i":
        return np.right_shift(x, np.where(outside, bits - 1, y).astype(x.dtype))
    return np.where(outside, 0, np.right_shift(x, np.where(outside, 0, y))).astype(x.dtype)


gcd = _binary(np.gcd, "i")


@pointwise("i")
def lcm(x, y):
    divisor = np.gcd(x, y)
    zero = divisor == 0
    safe = np.where(zero, 1, divisor).astype(x.dtype)
    whole = np.where(safe < 0, -(x // np.abs(safe)), x // safe).astype(x.dtype)
    if x.dtype.itemsize < 4:  # narrow integers wrap around last
        whole, y = whole.astype(np.int64), y.astype(np.int64)
    return np.where(zero, 0, np.abs(whole * y)).astype(x.dtype)


# ---- comparison and logic -----------------------------------------------------------------------

equal = _binary(np.equal, "bifcW8", bool)
not_equal = _binary(np.not_equal, "bifcW8", bool)
less = _binary(np.less, "bif", bool)
less_equal = _binary(np.less_equal, "bif", bool)
greater = _binary(np.greater, "bif", bool)
greater_equal = _binary(np.greater_equal, "bif", bool)
logical_and = _binary(np.logical_and, "bifc", bool)
logical_or = _binary(np.logical_or, "bifc", bool)
logical_xor = _binary(np.logical_xor, "bifc", bool)
logical_not = _unary(np.logical_not, "bifc", bool)
isnan = _unary(np.isnan, "bifcW8", bool)
isinf = _unary(np.isinf, "bifcW8", bool)
isfinite = _unary(np.isfinite, "bifcW8", bool)
signbit = pointwise("bif", bool)(
    _rename(lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0, "signbit")
)

# ---- rounding, parts ----------------------------------------------------------------------------


def _rounding(function):
    def body(x):
        return function(x) if x.dtype.kind == "f" else x.copy()

    return pointwise("if")(_rename(body, function.__name__))


floor = _rounding(np.floor)
ceil = _rounding(np.ceil)
trunc = _rounding(np.trunc)
rint = _rounding(np.rint)
copysign = _binary(np.copysign, "f")
ldexp = pointwise("f")(_rename(lambda x, y: x * np.exp2(y), "ldexp"))


def nextafter(x, y, out=None):
    """The next number after `x` in the direction of `y`, in their own dtype."""
    dtype = next(a.dtype for a in (x, y) if not isinstance(a, SCALARS))
    if kind_of(dtype) != "f":
        raise no_kernel("nextafter", dtype)
    x, y = (as_dtype(a, dtype) if isinstance(a, SCALARS) else a for a in (x, y))
    result = np.asarray(_nextafter(x, y))
    if out is None:
        return result
    np.copyto(out, result)
    return out


_nextafter = quiet(np.nextafter)
nextafter.nin, nextafter.kinds, nextafter.returns = 2, "f", None

real = pointwise("bifc", "real")(_rename(lambda x: np.real(x).copy(), "real"))
imag = pointwise("bifc", "real")(_rename(lambda x: np.imag(x).copy(), "imag"))


@pointwise("fc", "real")
def angle(x):
    if x.dtype.kind == "c":
        return np.angle(x)
    return np.where(np.isnan(x), x, np.where(x < 0, x.dtype.type(np.pi), x.dtype.type(0)))


@pointwise("bif")
def heaviside(x, y):
    return np.where(x == 0, y, (x > 0).astype(x.dtype))


# ---- exponentials, logarithms, trigonometry -----------------------------------------------------



def _in_double(function):
    """The kernel of a function whose loops for float32 NumPy has two to four units off."""

    def body(x):
        if x.dtype != np.float32:
            return function(x)
        return function(x, dtype=np.float64).astype(np.float32)

    return pointwise("fc")(_rename(body, function.__name__))


sqrt, sin, cos, tanh, arcsinh, arccosh, arctanh = (
    _unary(f, "fc")
    for f in (np.sqrt, np.sin, np.cos, np.tanh, np.arcsinh, np.arccosh, np.arctanh)
)
exp, exp2, expm1, log, log2, log10 = map(
    _in_double, (np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10)
)


def _log1p(x, dtype=None):
    if x.dtype.kind != "c":
        return np.log1p(x, dtype=dtype)
    re, im = x.real, x.imag  # near 0 NumPy loses the real part
    square = re * (2 + re) + im * im  # |1 + x|² - 1
    near = np.where(square == 0, re, 0.5 * np.log1p(square))
    real = np.where(np.hypot(re, im) < 0.5, near, np.log(np.hypot(1 + re, im)))
    return (real + 1j * np.arctan2(im, 1 + re)).astype(x.dtype)


log1p = _in_double(_rename(_log1p, "log1p"))
tan, arcsin, arccos, arctan, sinh, cosh = map(
    _in_double, (np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh)
)
arctan2 = _binary(np.arctan2, "f")
hypot = _binary(np.hypot, "f")
logaddexp2 = _binary(np.logaddexp2, "f")


@pointwise("fc")
def logaddexp(x, y):
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    larger = x.real >= y.real
    high, low = np.where(larger, x, y), np.where(larger, y, x)
    return high + np.log1p(np.exp(low - high))


# ---- special functions --------------------------------------------------------------------------

erf = pointwise("f")(_rename(lambda x: _special("erf")(x), "erf"))


@pointwise("f")
def erfc(x):
    """SciPy's squares x in one rounding, which its exponential makes twenty where erfc is small."""
    z = np.clip(x.astype(np.float64), 1, 26.5)
    high = z.astype(np.float32).astype(np.float64)      # whose square is exact
    small = _special("erfcx")(z) * np.exp(-high * high) * np.exp((high - z) * (high + z))
    return np.where((x > 1) & (x < 26.5), small, _special("erfc")(x)).astype(x.dtype)


erfinv = pointwise("f")(_rename(lambda x: _special("erfinv")(x), "erfinv"))


@pointwise("f")
def lgamma(x):
    return np.where(np.isinf(x), np.inf, _special("gammaln")(x)).astype(x.dtype)


@pointwise("f")
def digamma(x):
    # one-sided limits at zero, NaN at the other poles
    result = np.where((x < 0) & (x == np.floor(x)), np.nan, _special("digamma")(x))
    return np.where(x == 0, np.copysign(np.inf, -x), result).astype(x.dtype)


# ---- activations --------------------------------------------------------------------------------


@pointwise("fc")
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pointwise("if")
def relu(x):
    return np.where(x < 0, x.dtype.type(0), x)


@pointwise("f")
def gelu(x):
    """x Φ(x), by the complementary error function, so that the left tail keeps its digits"""
    return x * (0.5 * _special("erfc")(-x * math.sqrt(0.5)))


@pointwise("f")
def gelu_tanh(x):
    """½ x (1 + tanh(u)), u = √(2/π) (x + 0.044715 x³), where ½ (1 + tanh(u)) is sigmoid(2 u)"""
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return x / (1 + np.exp(-2 * u))


@pointwise("fc")
def silu(x):
    return x / (1 + np.exp(-x))


@pointwise("f")
def softplus(x, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta, and x where beta x exceeds the threshold"""
    scaled = beta * x
    return np.where(scaled > threshold, x, np.log1p(np.exp(scaled)) / beta)


@pointwise("f")
def mish(x):
    """x tanh(log(1 + exp(x)))"""
    return x * np.tanh(_log_of_exp(x))


@pointwise("f")
def logsigmoid(x):
    """log(1 / (1 + exp(-x)))"""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _log_of_exp(x):
    """log(1 + exp(x)), never infinite where x is not: from 80 on that is x in every type"""
    return np.where(x > 80, x, np.log1p(np.exp(np.minimum(x, x.dtype.type(80)))))


@pointwise("f")
def leaky_relu(x, slope=0.01):
    return np.where(x > 0, x, x * slope)


@pointwise("f")
def elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    """scale (x if x > 0 else alpha (exp(input_scale x) - 1))"""
    return np.where(x > 0, x * scale, np.expm1(x * input_scale) * (alpha * scale))


@pointwise("if")
def hardtanh(x, lo=-1.0, hi=1.0):
    return np.minimum(np.maximum(x, lo), hi)


@pointwise("if")
def threshold(x, limit, value):
    """x where it exceeds the limit, else the value"""
    return np.where(x <= limit, value, x)


@pointwise("f")
def hardsigmoid(x):
    """min(max(x + 3, 0), 6) / 6"""
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


@pointwise("f")
def hardswish(x):
    """x hardsigmoid(x)"""
    return x * np.minimum(np.maximum(x + 3, 0), 6) / 6


@pointwise("f")
def hardshrink(x, limit):
    """x, but 0 from -limit to limit"""
    return np.where((x >= -limit) & (x <= limit), x.dtype.type(0), x)


@pointwise("f")
def softshrink(x, limit):
    """x moved towards 0 by limit, but not past it"""
    return np.where(x > limit, x - limit, np.where(x < -limit, x + limit, x * 0))


# ---- losses -------------------------------------------------------------------------------------


# ---- derivatives: grad times the derivative, in one pass ----------------------------------------


@pointwise("f")
def relu_backward(grad, result):
    return np.where(result <= 0, grad.dtype.type(0), grad)


@pointwise("f")
def threshold_backward(grad, x, limit):
    return np.where(x <= limit, grad.dtype.type(0), grad)


@pointwise("fc")
def sigmoid_backward(grad, result):
    return grad * np.conj(result * (1 - result))


@pointwise("fc")
def tanh_backward(grad, result):
    return grad * np.conj(1 - result * result)


@pointwise("f")
def gelu_backward(grad, x):
    """grad (Φ(x) + x φ(x))"""
    phi = 0.5 * _special("erfc")(-x * math.sqrt(0.5))
    return (grad * (phi + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))).astype(x.dtype)


@pointwise("f")
def gelu_tanh_backward(grad, x):
    k = math.sqrt(2 / math.pi)
    s = 1 / (1 + np.exp(-2 * k * (x + 0.044715 * x * x * x)))
    slope = k * (1 + 3 * 0.044715 * x * x)
    return grad * (s + 2 * x * (s * (1 - s)) * slope)


@pointwise("fc")
def silu_backward(grad, x):
    s = 1 / (1 + np.exp(-x))
    return grad * np.conj(s * (1 + x * (1 - s)))


@pointwise("f")
def hardsigmoid_backward(grad, x):
    """The slope is 1/6 between -3 and 3"""
    return np.where((x > -3) & (x < 3), grad / 6, grad.dtype.type(0))


@pointwise("f")
def hardswish_backward(grad, x):
    """The slope is 0 up to -3, (2 x + 3) / 6 up to 3, and 1 from there"""
    middle = grad * (x / 3 + x.dtype.type(0.5))
    return np.where(x <= -3, grad.dtype.type(0), np.where(x < 3, middle, grad))


@pointwise("f")
def shrink_backward(grad, x, limit):
    """The gradient outside of -limit to limit: of hardshrink and softshrink alike"""
    return np.where((x >= -limit) & (x <= limit), grad.dtype.type(0), grad)


@pointwise("f")
def softplus_backward(grad, x, beta=1.0, threshold=20.0):
    scaled = beta * x
    z = np.exp(-np.abs(scaled))
    slope = np.where(scaled >= 0, 1 / (1 + z), z / (1 + z))
    return np.where(scaled > threshold, grad, grad * slope)


@pointwise("f")
def leaky_relu_backward(grad, x, slope=0.01):
    return np.where(x > 0, grad, grad * slope)


@pointwise("f")
def elu_backward(grad, x, alpha=1.0, scale=1.0, input_scale=1.0):
    steep = input_scale * (alpha * scale)
    return np.where(x <= 0, grad * steep * np.exp(x * input_scale), grad * scale)


@pointwise("f")
def elu_backward_of_result(grad, y, alpha, scale, input_scale):
    return np.where(y <= 0, grad * input_scale * (y + alpha * scale), grad * scale)


@pointwise("f")
def mish_backward(grad, x):
    """With t = tanh(log(1 + exp(x))): t + x sigmoid(x) (1 - t²)"""
    t = np.tanh(_log_of_exp(x))
    return grad * (t + x * (1 - t * t) / (1 + np.exp(-x)))


@pointwise("f")
def logsigmoid_backward(grad, x):
    """The slope is sigmoid(-x)"""
    return grad / (1 + np.exp(x))


@pointwise("f")
def hardtanh_backward(grad, x, lo=-1.0, hi=1.0):
    return np.where((x <= lo) | (x >= hi), grad.dtype.type(0), grad)


# ---- conversion ---------------------------------------------------------------------------------


def cast(x, dtype, out=None):
    """`x` converted as C does: towards zero, without a warning; a complex number loses its
    imaginary part; whatever is not zero is True. Out of range gives the least integer of the
    intermediate type: int32 for narrow targets, else int64."""
    dtype = np.dtype(dtype)
    result = np.asarray(_cast(np.asarray(x), dtype))
    if out is None:
        return result
    np.copyto(out, result, "unsafe")
    return out


@quiet
def _cast(x, dtype):
    if dtype.kind == "b":
        return x != 0
    if x.dtype.kind == "W":
        x = x.astype(np.complex64)
    if x.dtype.kind == "c" and dtype.kind not in "cW":
        x = x.real
    if is_reduced(x.dtype):
        x = x.astype(np.float32)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return _to_integer(x, dtype)
    if is_reduced(dtype) and (x.dtype.kind not in "fc" or kind_of(dtype) == "8"):
        x = x.astype(np.float32)
    if dtype.name == "float8_e4m3fn":  # saturates, as do no others
        x = np.clip(x, -448, 448)
    elif dtype.name == "float8_e8m0fnu":  # has powers of two only: no sign, no zero
        x = np.maximum(np.abs(x), np.float32(2.0**-127))
    return x.astype(dtype)


def _to_integer(x, dtype):
    if dtype == np.uint64:
        high = (x >= 2.0**63) & (x < 2.0**64)
        low = _to_integer(np.where(high, x - x.dtype.type(2.0**63), x), np.dtype(np.int64))
        return low.view(np.uint64) ^ (high.astype(np.uint64) << np.uint64(63))
    wide = dtype == np.uint32 or dtype.itemsize == 8
    middle = np.dtype(np.int64 if wide else np.int32)
    limit = x.dtype.type(2.0 ** (8 * middle.itemsize - 1))
    inside = (x >= -limit) & (x < limit)
    whole = np.where(inside, x, x.dtype.type(0)).astype(middle)
    return np.where(inside, whole, np.iinfo(middle).min).astype(dtype)


POINTWISE = tuple(
    sorted(name for name, value in globals().items() if hasattr(value, "kinds"))
)  # fmt: skip
