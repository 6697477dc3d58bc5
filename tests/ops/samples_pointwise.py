"""Samples of arithmetic, elementary functions, comparison, rounding, bits, and choices."""
import numpy as np
from samples import Samples, call

family = Samples()
inf, nan = float("inf"), float("nan")
CORNERS = [[0.0, -0.0, inf, -inf, nan, 1.0, -1.0]]

# ---- one argument -------------------------------------------------------------------------------

family.unary("abs", "neg", "exp", "sin", "cos", "sinh", "cosh", "tanh", "atan", "asinh", "sigmoid",
             "exp2", "expm1", "sgn", "square", more=CORNERS)
family.unary("tan", "positive", "angle")
family.unary("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", domain="positive",
             more=CORNERS)
family.unary("log1p", domain="positive", more=CORNERS)
family.unary("asin", "acos", "atanh", domain="unit", more=CORNERS)
family.unary("acosh", domain="above", bounds=(1.0,), more=CORNERS)
family.unary("erf", "erfc", "sign", "floor", "ceil", "trunc", "round", "frac", "relu",
             "deg2rad", "rad2deg", complex=False, more=CORNERS)
family.unary("erfinv", domain="unit", complex=False, more=CORNERS)
family.unary("isnan", "isinf", "isfinite", "isreal", "logical_not", more=CORNERS)
family.unary("isposinf", "isneginf", "signbit", complex=False, more=CORNERS)


@family("nan_to_num")
def _(r):
    return [call(r.real(2, 3)), call(np.array(CORNERS[0])).but(smooth=False),
            call(np.array(CORNERS[0]), 1.0, 2.0, -3.0).but(smooth=False), call(r.complex(3)),
            call(r.integers(0, 5, 3))]


@family("special.round")
def _(r):
    return [call(r.real(2, 3), decimals=1), call(r.real(3) * 100, decimals=-1),
            call(np.array([0.5, 1.5, -2.5])).but(smooth=False)]


# ---- two arguments ------------------------------------------------------------------------------

family.binary("mul", number=2.5)
family.binary("true_divide", domain="positive", number=2.5,
              more=[([1.0, -1.0, 0.0, 2.0], [0.0, 0.0, 0.0, inf])])
family.binary("float_power", domain="positive", number=2)
family.binary("maximum", "minimum", "fmax", "fmin", complex=False, domain="distinct", more=[
    ([1.0, 2.0, nan, 3.0, inf], [1.0, 3.0, 2.0, nan, inf])])
family.binary("atan2", complex=False,
              more=[([0.0, -0.0, 1.0, inf], [-1.0, -1.0, 0.0, inf])])
family.binary("hypot", complex=False, more=[([3.0, 0.0, inf, nan], [4.0, 2.0, nan, 0.0])])
family.binary("remainder", "fmod", "floor_divide", complex=False, number=0.7, more=[
    ([5.0, -5.0, 5.0, -5.0, 0.3, inf, 1.0], [3.0, 3.0, -3.0, -3.0, 0.1, 2.0, 0.0])])
family.binary("copysign", complex=False, number=-1.0, more=[([1.0, -0.0, 0.0], [-0.0, 0.0, -1.0])])
family.binary("nextafter", complex=False)
family.binary("eq", "ne", number=2.5, more=[([1.0, nan, inf], [1.0, nan, inf])])
family.binary("lt", "le", "gt", "ge", complex=False, number=0.5,
              more=[([1.0, nan, inf], [1.0, nan, inf])])
family.binary("logical_and", "logical_or", "logical_xor",
              more=[([0.0, 1.0, 0.0, nan], [0.0, 0.0, 2.0, 1.0])])


@family("pow")
def _(r):
    x = r.positive(2, 3)
    calls = [call(x, e) for e in (2, 3, 0.5, -0.5, -1, -2, 2.5, 0, 1, 1.5 + 0.5j)]
    calls += [call(2.5, r.real(3)), call(0.0, np.array([0.0, 1.0, 2.0])).but(smooth=False),
              call(2, r.complex(2)), call(x, r.real(2, 3)), call(r.positive(2, 1), r.real(3)),
              call(r.complex(3), 2), call(r.complex(3), r.complex(3)), call(r.complex(3), 0.3),
              call(r.integers(-3, 4, 4), 2), call(r.integers(-3, 4, 4), r.integers(-2, 4, 4)),
              call(r.integers(1, 4, 4), 0.5), call(r.integers(1, 4, 3), r.real(3))]
    for base, exponent in (([0.0, 0.0, 0.0, 2.0, -2.0, 0.0], [0.0, 1.0, 2.0, 0.0, 2.0, -1.0]),
                           ([-2.0, 3.0, 0.0], 2.0), ([-2.0, 3.0, 0.0], 0.0), ([2.0, 0.0], -1.0),
                           ([2.0, 0.0, -1.0, inf, -inf, nan], 0.5)):
        exponent = np.array(exponent) if isinstance(exponent, list) else exponent
        calls.append(call(np.array(base), exponent).but(smooth=False))
    return calls


family.untested["add_scaled"] = family.untested["sub_scaled"] = \
    "add and sub with alpha, where no level watches"


@family("add")
def _(r):
    return [call(r.real(2, 3), r.real(3), alpha=2.5), call(r.real(2, 3), 2, alpha=3),
            call(r.integers(0, 5, 3), r.integers(0, 5, 3), alpha=2),
            call(r.integers(0, 5, 3), r.real(3)), call(r.bools(3), r.bools(3)),
            call(r.complex(2), r.real(2)), call(r.real(2, 3), r.real(2, 3)), call(r.real(), 1)]


@family("sub")
def _(r):
    return [call(r.real(2, 3), r.real(3), alpha=2.5), call(r.real(2, 3), 2, alpha=3),
            call(r.integers(0, 5, 3), r.integers(0, 5, 3)), call(r.complex(2), r.real(2), alpha=2)]


@family("rsub")
def _(r):
    return [call(r.real(2, 3), r.real(3), alpha=2.5), call(r.real(2, 3), 2)]


@family("div")
def _(r):
    calls = [call(r.positive(2, 3), r.positive(3)), call(r.real(2, 3), 4),
             call(r.complex(3), r.complex(3)), call(r.integers(1, 9, 3), r.integers(1, 4, 3))]
    for mode in ("floor", "trunc"):
        calls += [call(r.real(2, 3), r.positive(3), rounding_mode=mode),
                  call(r.real(2, 3), 0.7, rounding_mode=mode),
                  call(r.integers(-9, 9, 6), 4, rounding_mode=mode),
                  call(r.integers(-9, 9, 6), np.array([2, -2, 3, -3, 4, 5]), rounding_mode=mode)]
    return calls


@family("Tensor.div_")
def _(r):
    return [call(r.integers(-9, 9, 6), 4, rounding_mode="floor")]


@family("Tensor.__rtruediv__")
def _(r):
    return [call(r.positive(2, 3), 2), call(r.integers(1, 5, 3), 2)]


@family("Tensor.__rpow__")
def _(r):
    return [call(r.real(2, 3), 2), call(r.integers(0, 5, 3), 2)]


@family("Tensor.__rfloordiv__")
def _(r):
    return [call(r.real(2, 3), 2), call(r.integers(1, 5, 3), 7)]


@family("Tensor.__rmod__")
def _(r):
    return [call(r.real(2, 3), 2), call(r.integers(1, 5, 3), 7)]


for _name in ("addcmul", "addcdiv"):
    @family(_name)
    def _(r):
        return [call(r.real(2, 3), r.real(2, 3), r.positive(2, 3)),
                call(r.real(2, 3), r.real(3), r.positive(2, 1), value=-1.5),
                call(r.complex(2), r.complex(2), r.complex(2), value=2),
                call(r.real(), r.real(), r.positive())]


@family("lerp")
def _(r):
    return [call(r.real(2, 3), r.real(2, 3), 0.3), call(r.real(2, 3), r.real(3), 0.8),
            call(r.real(2, 3), r.real(3), r.probability(2, 1)),
            call(r.complex(3), r.complex(3), 0.2), call(r.real(), r.real(), r.real())]


# ---- bits, divisors -----------------------------------------------------------------------------

for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
              "bitwise_right_shift", "gcd", "lcm"):
    @family(_name)
    def _(r, numbers=_name not in ("gcd", "lcm")):
        return [call(r.integers(0, 50, 2, 3), r.integers(1, 7, 3)),
                call(r.integers(-50, 50, 5), r.integers(0, 7, 5)),
                *([call(r.integers(0, 50, 3), 3), call(5, r.integers(1, 7, 3))] if numbers else [])]
    family.pointwise[_name] = 2


@family("bitwise_not")
def _(r):
    return [call(r.integers(-50, 50, 5)), call(r.bools(4))]


family.pointwise["bitwise_not"] = 1

# ---- comparison and choice ----------------------------------------------------------------------


@family("isclose")
def _(r):
    x = r.real(5)
    return [call(x, x + 1e-9), call(x, x + 1e-3, rtol=1e-2),
            call(np.array([nan, inf, 1.0]), np.array([nan, inf, 1.0]), equal_nan=True),
            call(r.integers(0, 5, 4), r.integers(0, 5, 4)), call(r.bools(4), r.bools(4)),
            call(r.complex(3), r.complex(3), atol=2.0)]


@family("allclose")
def _(r):
    x = r.real(5)
    return [call(x, x + 1e-9), call(x, x + 1e-3)]


@family("equal")
def _(r):
    x = r.real(5)
    return [call(x, x), call(x, x[:4]), call(x, x + 1)]


@family("is_nonzero")
def _(r):
    return [call(r.real(1)), call(np.zeros(()))]


@family("where")
def _(r):
    return [call(r.bools(2, 3), r.real(2, 3), r.real(2, 3)),
            call(r.bools(3), r.real(2, 1), r.real()), call(r.bools(3), r.real(3), 2.0),
            call(r.bools(3), 1, r.real(3)), call(r.bools(4)), call(r.bools(3), 1, 2),
            call(r.bools(3), r.complex(3), r.real(3)), call(r.bools(3), r.integers(0, 5, 3), 1.5)]


@family("Tensor.where")
def _(r):
    return [call(r.real(3), r.bools(3), 0), call(r.real(3), r.bools(2, 3), r.real(2, 1))]


@family("Tensor.masked_fill")
def _(r):
    return [call(r.real(2, 3), r.bools(2, 3), 1.5), call(r.real(3), r.bools(2, 3), 1),
            call(r.real(2, 3), r.bools(3), r.real()), call(r.integers(0, 5, 3), r.bools(3), 2)]


@family("Tensor.masked_fill_")
def _(r):
    return [call(r.integers(0, 5, 3), r.bools(3), 2)]


@family("clamp")
def _(r):
    x, edge = r.distinct(2, 3), np.array([0.0, 1.0, 0.5, -1.0, 2.0, nan])
    return [call(x, -0.31, 0.47), call(x, min=-0.31), call(x, max=0.47), call(x, 0.5, -0.5),
            call(x, r.distinct(3), r.distinct(2, 1) + 1), call(x, min=r.distinct(2, 3)),
            call(x, max=r.distinct(3)), call(x, -0.31, r.distinct(3)),
            call(edge, 0, 1).but(smooth=False),
            call(edge, edge * 0, edge * 0 + 1).but(smooth=False),
            call(r.integers(-5, 5, 6), -2, 3), call(r.integers(-5, 5, 6), 0.5)]


@family("clamp_min")
def _(r):
    return [call(r.distinct(2, 3), 0.05), call(r.distinct(2, 3), r.distinct(3))]


@family("clamp_max")
def _(r):
    return [call(r.distinct(2, 3), 0.05), call(r.distinct(2, 3), r.distinct(3))]


@family("fill")
def _(r):
    return [call(r.real(2, 3), 2.5), call(r.real(2, 3), r.real()), call(r.integers(0, 5, 3), 2)]


family.pointwise |= {"pow": 2, "add": 2, "sub": 2, "div": 2}
family.unbatched = ("allclose", "equal", "is_nonzero")
family.untested["div_rounded"] = "what div_ with a rounding mode runs; Tensor.div_ has samples"
family.untested |= dict.fromkeys(("div.Scalar_mode", "floor_divide.Scalar"),
                                 "numbers stand for tensors there: as the first overload")
