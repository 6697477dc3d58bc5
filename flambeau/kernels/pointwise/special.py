"""Special functions that SciPy has, as kernels; SciPy is imported when one is first called. Without
it, `special_functions` has most of them in NumPy."""

import math

import numpy as np

from flambeau.kernels._extension import compiled
from flambeau.kernels.declaration import named, pointwise, special
from flambeau.kernels.dtypes import is_reduced, no_kernel, silent_astype


def _from_scipy(name, count=1):
    """The SciPy function of that name as a kernel for floating-point numbers."""
    general = pointwise("f")(named(
        (lambda x: special(name)(x)) if count == 1 else lambda x, y: special(name)(x, y), name))
    found = []                      # the function, once it has been called

    def kernel(x, *rest, **out):
        if not out and len(rest) == count - 1 and type(x) is np.ndarray and x.dtype.char in "fd" \
                and all(type(y) is np.ndarray and y.dtype is x.dtype for y in rest):
            if not found:
                from flambeau.kernels import quiet
                found.append(quiet(special(name)))
            return np.asarray(found[0](x, *rest))
        return general(x, *rest, **out)

    return named(kernel, name)


def without_half_loops(kernel):
    """The kernel without loops for narrow floats, as PyTorch's is."""

    def run(x, *rest, **out):
        if is_reduced(x.dtype):
            raise no_kernel(kernel.__name__, x.dtype)
        return kernel(x, *rest, **out)

    return named(run, kernel.__name__)


i0, i0e, i1, i1e, ndtr = (
    compiled(name)(_from_scipy(name)) for name in ("i0", "i0e", "i1", "i1e", "ndtr"))
modified_i0, modified_i1 = (
    compiled(f"modified_{name}")(without_half_loops(_from_scipy(name))) for name in ("i0", "i1"))
j0, j1, y0, y1, k0, k0e, k1, k1e, erfcx, ndtri, log_ndtr = (
    compiled(name)(without_half_loops(_from_scipy(name))) for name in (
        "j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e", "erfcx", "ndtri", "log_ndtr"))
gammainc, gammaincc = (compiled(name)(_from_scipy(name, 2)) for name in ("gammainc", "gammaincc"))
zeta = compiled("zeta")(without_half_loops(_from_scipy("zeta", 2)))


@compiled("airy_ai")
@without_half_loops
@pointwise("f")
def airy_ai(x):
    r = special("airy")(x)[0]
    if np.isnan(r).any():                   # SciPy gives up far from 0: Ai is 0, or oscillates
        z = np.abs(x)
        wave = np.sin(2 / 3 * z * np.sqrt(z) + np.pi / 4) / np.sqrt(np.pi * np.sqrt(z))
        far = np.isnan(r) & np.isfinite(x)
        r = np.where(far, np.where(x > 0, np.zeros((), x.dtype), wave), r).astype(x.dtype)
    return r


@pointwise("f")
def airy_ai_prime(x):
    return special("airy")(x)[1]


@compiled("spherical_j0")
@pointwise("f")
def spherical_j0(x):
    """sin(x) / x"""
    safe = np.where(x == 0, 1, x)
    return np.where(np.isinf(x), 0, np.where(x == 0, 1, np.sin(safe) / safe)).astype(x.dtype)


@compiled("sinc")
@pointwise("fc")
def sinc(x):
    """sin(πx) / (πx)"""
    scaled = x * math.pi
    safe = np.where(x == 0, 1, scaled).astype(x.dtype)
    return np.where(x == 0, 1, np.sin(safe) / safe).astype(x.dtype)


@compiled("polygamma")
def polygamma(x, n):
    """The n-th derivative of digamma: for n > 0 (-1)^(n+1) n! ζ(n+1, x)"""
    if n == 0:
        from flambeau.kernels import digamma
        return digamma(x)
    wide = silent_astype(x, np.dtype(np.float64))
    factor = (1.0 if n % 2 else -1.0) * math.factorial(n)
    finite = np.where(np.isposinf(wide), 1.0, wide)
    sums = zeta(np.full(wide.shape, n + 1.0), finite)
    return silent_astype(np.asarray(factor * np.where(np.isposinf(wide), 0, sums)), x.dtype)


@compiled("logit")
@pointwise("f", stepwise=True)
def logit(x, eps):
    """log(x / (1 - x)), with x first brought into [eps, 1 - eps] if eps is not negative"""
    one = x.dtype.type(1)
    if eps >= 0:
        x = np.minimum(np.maximum(x, eps), one - eps)
    return np.log(x / (one - x))


@compiled("entr")
@pointwise("f", stepwise=True)
def entr(x):
    """-x log(x); 0 at 0 and -inf below"""
    outside = np.where(x < 0, x.dtype.type(-np.inf), np.abs(x))         # NaN stays NaN
    return np.where(x > 0, -x * np.log(x), outside)


@compiled("xlogy")
@pointwise("f", stepwise=True)
def xlogy(x, y):
    """x log(y); 0 where x is 0, unless y is NaN"""
    return _unless_zero(x, y, x * np.log(y))


@compiled("xlog1py")
@pointwise("f", stepwise=True)
def xlog1py(x, y):
    """x log(1 + y); 0 where x is 0, unless y is NaN"""
    return _unless_zero(x, y, x * np.log1p(y))


def _unless_zero(x, y, product):
    return np.where((x == 0) & (y == y), product.dtype.type(0), product)


@compiled("round_decimals")
@pointwise("f")
def round_decimals(x, decimals):
    """x to so many decimals; with a negative number of them, to that power of ten"""
    scale = x.dtype.type(10.0 ** abs(int(decimals)))
    return np.rint(x / scale) * scale if decimals < 0 else np.rint(x * scale) / scale


@compiled("nan_to_num")
@pointwise("f")
def nan_to_num(x, nan, high, low):
    """x with numbers in place of NaN and infinities"""
    return np.where(x != x, nan, np.where(np.isfinite(x), x, np.where(x > 0, high, low)))


@compiled("frexp")
def frexp(x):
    """Mantissas in [1/2, 1), and exponents of 2."""
    if x.dtype.kind not in "fV" and not is_reduced(x.dtype):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    wide = silent_astype(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x
    mantissa, exponent = np.frexp(wide)
    return silent_astype(np.asarray(mantissa), x.dtype), np.asarray(exponent, np.int32)


# ---- orthogonal polynomials ---------------------------------------------------------------------


def _polynomial(name, first, step):
    """The polynomials of degrees n (rounded towards zero; of a negative degree 0) at x: p_0 = 1,
    p_1 = first(x), p_{k+1} = (a x + b) p_k - c p_{k-1} with step(k) = a, b, c."""
    def evaluate(x, n):
        degree = np.where(np.isfinite(n), n, -1).astype(np.int64)
        x, degree = np.broadcast_arrays(x, degree)
        result = np.where(degree == 0, x.dtype.type(1), x.dtype.type(0))
        before, here = np.ones_like(x), (x * first[0] + first[1]).astype(x.dtype)
        for k in range(1, int(degree.max(initial=-1)) + 1):
            result = np.where(degree == k, here, result)
            a, b, c = step(k)
            before, here = here, ((x * a + b) * here - before * c).astype(x.dtype)
        return result
    return compiled(name)(pointwise("f")(named(evaluate, name)))


POLYNOMIALS = {                     # what is linear in x, and the step: a, b, c
    **{f"{shifted}chebyshev_polynomial_{kind}": (
        ((2 * a, b - a), lambda k: (4, -2, 1)) if shifted else ((a, b), lambda k: (2, 0, 1)))
       for kind, (a, b) in {"t": (1, 0), "u": (2, 0), "v": (2, -1), "w": (2, 1)}.items()
       for shifted in ("", "shifted_")},
    "hermite_polynomial_h": ((2, 0), lambda k: (2, 0, 2 * k)),
    "hermite_polynomial_he": ((1, 0), lambda k: (1, 0, k)),
    "laguerre_polynomial_l": ((-1, 1), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1),
                                                  k / (k + 1))),
    "legendre_polynomial_p": ((1, 0), lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1))),
}
polynomials = {name: _polynomial(name, *rule) for name, rule in POLYNOMIALS.items()}
