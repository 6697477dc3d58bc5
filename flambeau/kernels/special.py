"""Special functions that SciPy has, as kernels; SciPy is imported when one is first called. Without
it, `special_functions` has most of them in NumPy."""

import math

import numpy as np

from .reference import _rename, _special, is_reduced, no_kernel, pointwise


def _from_scipy(name, count=1):
    """The SciPy function of that name as a kernel for floating-point numbers."""
    if count == 1:
        return pointwise("f")(_rename(lambda x: _special(name)(x), name))
    return pointwise("f")(_rename(lambda x, y: _special(name)(x, y), name))


def without_halves(kernel):
    """The kernel without loops for narrow floats, as PyTorch's is."""

    def run(x, *rest, **out):
        if is_reduced(x.dtype):
            raise no_kernel(kernel.__name__, x.dtype)
        return kernel(x, *rest, **out)

    return _rename(run, kernel.__name__)


i0, i0e, i1, i1e = (_from_scipy(name) for name in ("i0", "i0e", "i1", "i1e"))
modified_i0, modified_i1 = without_halves(i0), without_halves(i1)
j0, j1, y0, y1, k0, k0e, k1, k1e, erfcx, ndtri, log_ndtr = (
    without_halves(_from_scipy(name)) for name in (
        "j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e", "erfcx", "ndtri", "log_ndtr"))
ndtr = _from_scipy("ndtr")
gammainc, gammaincc = (_from_scipy(name, 2) for name in ("gammainc", "gammaincc"))
zeta = without_halves(_from_scipy("zeta", 2))


@without_halves
@pointwise("f")
def airy_ai(x):
    r = _special("airy")(x)[0]
    if np.isnan(r).any():                   # SciPy gives up far from 0: Ai is 0, or oscillates
        z = np.abs(x)
        wave = np.sin(2 / 3 * z * np.sqrt(z) + np.pi / 4) / np.sqrt(np.pi * np.sqrt(z))
        far = np.isnan(r) & np.isfinite(x)
        r = np.where(far, np.where(x > 0, np.zeros((), x.dtype), wave), r).astype(x.dtype)
    return r


@pointwise("f")
def airy_ai_prime(x):
    return _special("airy")(x)[1]


@without_halves
@pointwise("f")
def spherical_j0(x):
    """sin(x) / x"""
    safe = np.where(x == 0, 1, x)
    return np.where(np.isinf(x), 0, np.where(x == 0, 1, np.sin(safe) / safe)).astype(x.dtype)


@pointwise("fc")
def sinc(x):
    """sin(πx) / (πx)"""
    scaled = x * math.pi
    safe = np.where(x == 0, 1, scaled).astype(x.dtype)
    return np.where(x == 0, 1, np.sin(safe) / safe).astype(x.dtype)


def polygamma(n, x):
    """The n-th derivative of digamma, n > 0: (-1)^(n+1) n! ζ(n+1, x)"""
    from .reference import silent_astype
    wide = silent_astype(x, np.dtype(np.float64))
    factor = (1.0 if n % 2 else -1.0) * math.factorial(n)
    finite = np.where(np.isposinf(wide), 1.0, wide)
    sums = zeta(np.full(wide.shape, n + 1.0), finite)
    return silent_astype(np.asarray(factor * np.where(np.isposinf(wide), 0, sums)), x.dtype)


@pointwise("f", stepwise=True)
def logit(x, eps=None):
    """log(x / (1 - x)), with x first brought into [eps, 1 - eps] if eps is not negative"""
    one = x.dtype.type(1)
    if eps >= 0:
        x = np.minimum(np.maximum(x, eps), one - eps)
    return np.log(x / (one - x))


@pointwise("f", stepwise=True)
def entr(x):
    """-x log(x); 0 at 0 and -inf below"""
    outside = np.where(x < 0, x.dtype.type(-np.inf), np.abs(x))         # NaN stays NaN
    return np.where(x > 0, -x * np.log(x), outside)


@pointwise("f", stepwise=True)
def xlogy(x, y):
    """x log(y); 0 where x is 0, unless y is NaN"""
    return _unless_zero(x, y, x * np.log(y))


@pointwise("f", stepwise=True)
def xlog1py(x, y):
    """x log(1 + y); 0 where x is 0, unless y is NaN"""
    return _unless_zero(x, y, x * np.log1p(y))


def _unless_zero(x, y, product):
    return np.where((x == 0) & (y == y), product.dtype.type(0), product)
