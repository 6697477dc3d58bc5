"""Special functions in NumPy, for where SciPy is not installed.

They take and give arrays, whose elements they compute in float64. Names are SciPy's. What is not
here needs SciPy, and says so.
"""

import functools
import math
from typing import Any

import numpy as np

from flambeau.kernels._extension import native as _native
from flambeau.kernels._quiet import quiet

_EULER = 0.57721566490153286


_COMPILED = {"gammaln": "lgamma", **{name: name for name in (
    "erf", "erfc", "erfinv", "digamma", "gammainc", "gammaincc", "zeta", "i0", "i0e", "i1", "i1e",
    "j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e", "erfcx", "ndtr", "log_ndtr", "ndtri")}}


def find(name, compiled=True):
    """The function of that name, the extension's if it has it and that is not refused. ImportError
    where only SciPy has it."""
    found = (compiled and getattr(_native, _COMPILED.get(name, ""), None)) or _FUNCTIONS.get(name)
    if found is None:
        raise ImportError(f"the special function {name} needs SciPy: pip install "
                          "'flambeau[scipy]'", name="scipy")
    return found


_FUNCTIONS: dict[str, Any] = {}


def _function(body):
    """Makes float64 of the arguments, and of the result what they were."""

    @functools.wraps(body)
    def run(*args):
        dtype = np.result_type(*args)
        wide = np.broadcast_arrays(*[np.asarray(a, np.float64) for a in args])
        shape = wide[0].shape
        found = silent(*[a.reshape(-1) for a in wide]).reshape(shape)
        return found.astype(dtype if dtype.kind == "f" else np.float64)

    silent = quiet(body)
    _FUNCTIONS[body.__name__] = run
    return run


def _each(function, x):
    return np.fromiter(map(function, x.tolist()), np.float64, x.size)


# ---- error functions ----------------------------------------------------------------------------


@_function
def erf(x):
    return _each(math.erf, x)


@_function
def erfc(x):
    return _each(math.erfc, x)


@_function
def erfinv(y):
    """Winitzki's approximation, then Newton's iteration on erf or, in the tails, on log(erfc)."""
    a = np.abs(y)
    inside = np.where(a < 1, a, 0.5)
    series = np.log1p(-inside * inside)
    b = 4.33074675 + 0.5 * series
    x = np.sqrt(np.maximum(np.sqrt(b * b - series / 0.147) - b, 0))
    for _ in range(4):
        slope = 2 / math.sqrt(math.pi) * np.exp(-x * x)
        tail = _each(math.erfc, x)
        middle = (_each(math.erf, x) - inside) / slope
        x = x - np.where(inside < 0.5, middle, -np.log(tail / (1 - inside)) * tail / slope)
    x = np.where(inside < 1e-8, inside * (math.sqrt(math.pi) / 2), x)
    x = np.where(a < 1, x, np.where(a == 1, np.inf, np.nan))
    return np.copysign(x, y)


@_function
def erfcx(x):
    """exp(x²) erfc(x); from 10 on by the asymptotic series"""
    z = np.clip(x, -27, 10)
    high = z.astype(np.float32).astype(np.float64)      # whose square is exact
    scale = np.exp(high * high) * np.exp((z - high) * (z + high))
    far = np.maximum(x, 10)
    term, total = np.ones_like(far), np.ones_like(far)
    for n in range(1, 30):
        term = term * -(2 * n - 1) / (2 * far * far)
        total = total + term
    series = total / (far * math.sqrt(math.pi))
    found = np.where(x > 10, np.where(np.isinf(x), 0, series), scale * _each(math.erfc, z))
    return np.where(np.isnan(x), x, np.where(x < -27, np.inf, found))


@_function
def ndtr(x):
    return 0.5 * _each(math.erfc, -x * math.sqrt(0.5))


@_function
def log_ndtr(x):
    """log Φ(x); far to the left by erfcx"""
    right = np.log1p(-0.5 * _each(math.erfc, x * math.sqrt(0.5)))
    left = np.log(0.5 * erfcx(np.maximum(-x, 0) * math.sqrt(0.5))) - 0.5 * x * x
    return np.where(x > -1, right, left)


@_function
def ndtri(p):
    """Φ⁻¹, by Newton's iteration on log Φ in the lower half"""
    lower = np.where(p < 0.5, p, 1 - p)
    inside = np.where((lower > 0) & (lower <= 0.5), lower, 0.25)
    t = np.sqrt(-2 * np.log(inside))
    x = -(t - (2.515517 + 0.802853 * t + 0.010328 * t * t)
          / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t ** 3))
    for _ in range(4):
        log_phi = log_ndtr(x)
        step = (log_phi - np.log(inside)) * np.exp(log_phi + 0.5 * x * x)
        x = x - step * math.sqrt(2 * math.pi)
    x = np.where(lower == 0.5, 0.0, np.where(lower == 0, -np.inf, x))
    x = np.where((p >= 0) & (p <= 1), x, np.nan)
    return np.where(p < 0.5, x, -x)


# ---- gamma functions ----------------------------------------------------------------------------


@functools.cache
def _zetas():
    """Of log Γ(2 + z) / z the coefficients of (-z)ᵏ."""
    return [1 - _EULER, *(-float(zeta(k, 2.0)) / k for k in range(2, 30))]


@_function
def gammaln(x):
    pole = ((x <= 0) & (x == np.floor(x))) | np.isinf(x)
    safe = np.where(pole | (np.abs(x) > 1e305), 1.0, x)
    found = np.where(np.abs(x) > 1e305, x * (np.log(np.abs(x)) - 1), _each(math.lgamma, safe))
    near = np.abs(x - 1.5) < 1                          # its zeros, 1 and 2
    z = np.where(near, x - np.where(x < 1.5, 1, 2), 0)
    series = z * np.polynomial.polynomial.polyval(-z, _zetas()) if near.any() else z
    found = np.where(near, series - np.where(x < 1.5, np.log1p(z), 0), found)
    return np.where(pole, np.inf, found)


@_function
def digamma(x):
    """Recurrence up to 10, then the asymptotic series; reflection on the left"""
    left = x < 0
    y = np.where(left, 1 - x, x)
    r = np.zeros_like(y)
    for _ in range(10):
        small = y < 10
        r = r - np.where(small, 1 / y, 0)
        y = y + small
    z = 1 / (y * y)
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (
        5 / 660 - z * (691 / 32760 - z / 12))))))
    found = r + np.log(y) - 0.5 / y - np.where(y < 1e17, series, 0)
    reflected = found - math.pi / np.tan(math.pi * np.modf(np.where(left, x, 0.5))[0])
    pole = left & (x == np.floor(x))
    found = np.where(left, np.where(pole, np.nan, reflected), found)
    return np.where(x == 0, np.copysign(np.inf, -x), found)


# the even Bernoulli numbers over their factorials
_BERNOULLI = [b / math.factorial(2 * k) for k, b in enumerate((
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330), 1)]


@_function
def zeta(s, q):
    """Σ (k + q)^-s over k ≥ 0: the first terms, and Euler and Maclaurin's formula for the rest"""
    whole = q == np.floor(q)
    inside = (s > 1) & np.isfinite(s) & np.isfinite(q) & (
        (q > 0) | (~whole & (s == np.floor(s)) & (q > -1e6)))
    s0, y = np.where(inside, s, 2.0), np.where(inside, q, 1.0)
    total = np.zeros_like(y)
    first, enough = y, np.minimum(10 + s0, 200)
    steps = np.zeros_like(y)
    while (y < enough).any():
        small = y < enough
        total = total + np.where(small, y ** -s0, 0)
        steps = steps + small
        y = first + steps
    total = total + y ** (1 - s0) / (s0 - 1) + 0.5 * y ** -s0
    rising, power = s0, y ** (-s0 - 1)
    for j, number in enumerate(_BERNOULLI):
        total = total + number * rising * power
        rising = rising * (s0 + 2 * j + 1) * (s0 + 2 * j + 2)
        power = power / (y * y)
    total = np.where((q <= 0) & whole & ~(s < 1), np.inf, np.where(inside, total, np.nan))
    limit = np.where(q == 1, 1, np.where(q < 1, np.inf, np.nan))
    return np.where(s == 1, np.inf, np.where(np.isposinf(s), limit, total))


def polygamma(n, x):
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(x)
    return -(-1.0) ** n * math.factorial(n) * zeta(np.float64(n + 1), x)


_FUNCTIONS["polygamma"] = polygamma
# log Γ(a) minus Stirling's formula, in powers of 1 / a
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _density(a, x):
    """x^a e^-x / Γ(a), without loss where a is large"""
    excess = (x - a) / a
    near = np.abs(excess) < 0.5
    mu = np.where(near, excess, 0)
    stirling = sum(c / a ** (2 * i + 1) for i, c in enumerate(_STIRLING))
    large = np.sqrt(a / (2 * math.pi)) * np.exp(-a * (mu - np.log1p(mu)) - stirling)
    plain = np.exp(a * np.log(x) - x - gammaln(a))
    return np.where((a > 15) & near, large, plain)


def _gamma_parts(a, x):
    """P(a, x) and Q(a, x), the smaller of which has been computed: by its power series, or by a
    continued fraction (Lentz's method)"""
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    a0, x0 = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    low = x0 < a0 + 1
    front = _density(a0, x0)
    term = np.where(low, 1 / a0, 0)
    total, k = term, 0
    numerator = np.where(low, x0, 0)
    while (term > 1e-17 * total).any():
        k += 1
        term = term * numerator / (a0 + k)
        total = total + term
    b = np.where(low, 3.0, x0 + 1 - a0)
    c, d = np.full_like(b, 1e300), 1 / b
    h, k, active = d, 0, ~low
    while active.any() and k < 10_000:
        k += 1
        factor = np.where(active, -k * (k - a0), 0)
        b = b + 2
        d = 1 / (factor * d + b)
        c = b + factor / c
        change = np.where(active, c * d, 1)
        h = h * change
        active = active & (np.abs(change - 1) > 4e-16)
    p = np.where(low, front * total, 1 - front * h)
    q = np.where(low, 1 - front * total, front * h)
    edge = np.where((a < 0) | (x < 0) | np.isnan(a + x) | ((a == 0) & (x == 0)), np.nan,
                    np.where((x == 0) | np.isposinf(a) & np.isfinite(x), 0.0, 1.0))
    edge = np.where(np.isposinf(a) & np.isposinf(x), np.nan, edge)
    return np.where(inside, p, edge), np.where(inside, q, 1 - edge)


@_function
def gammainc(a, x):
    return _gamma_parts(a, x)[0]


@_function
def gammaincc(a, x):
    return _gamma_parts(a, x)[1]


# ---- Bessel functions: integrals, by the trapezoidal rule, which converges exponentially --------

_HALF_CIRCLE = np.cos((np.arange(64) + 0.5) * (math.pi / 64))[:, None]


def _scaled_bessel_i(x, order):
    """I(x) exp(-|x|), of the order 0 or 1; from 30 on by the asymptotic series"""
    y = np.abs(x)
    near, far = np.minimum(y, 30), np.maximum(y, 30)
    up, down = np.exp(near * (_HALF_CIRCLE - 1)), np.exp(-near * (_HALF_CIRCLE + 1))
    if order:
        middle = np.where(near < 1, np.sinh(near * _HALF_CIRCLE) * np.exp(-near), (up - down) / 2)
        close = (middle * _HALF_CIRCLE).mean(0)
    else:
        close = up.mean(0)
    term, total = np.ones_like(far), np.ones_like(far)
    for n in range(1, 25):
        term = term * -(4 * order - (2 * n - 1) ** 2) / (8 * n * far)
        total = total + term
    series = total / np.sqrt(2 * math.pi * far)
    found = np.where(y <= 30, close, np.where(np.isinf(y), 0, series))
    found = np.where(np.isnan(x), x, found)
    return np.copysign(found, x) if order else found


@_function
def i0e(x):
    return _scaled_bessel_i(x, 0)


@_function
def i1e(x):
    return _scaled_bessel_i(x, 1)


@_function
def i0(x):
    return _scaled_bessel_i(x, 0) * np.exp(np.abs(x) / 2) * np.exp(np.abs(x) / 2)


@_function
def i1(x):
    return _scaled_bessel_i(x, 1) * np.exp(np.abs(x) / 2) * np.exp(np.abs(x) / 2)


def _scaled_bessel_k(x, order):
    """K(x) exp(x), of any order below 2: the integral of exp(-x (cosh t - 1)) cosh(order t)"""
    y = np.where((x > 1e-9) & (x < 1e15), x, 1.0)
    end = np.arcsinh(np.sqrt(375 / y)) * 2          # where the integrand has vanished
    steps, total = 400, 0.5 * np.ones_like(y)
    for k in range(1, steps):
        t = end * (k / steps)
        total = total + np.exp(-2 * y * np.sinh(t / 2) ** 2) * np.cosh(order * t)
    found = np.where(x >= 1e15, np.sqrt(math.pi / 2 / x), total * end / steps)
    near = 1 / x if order else -np.log(x / 2) - _EULER
    found = np.where(x <= 1e-9, near * (1 + x), found)
    return np.where(x > 0, found, np.where(x == 0, np.inf, np.nan))


@_function
def k0e(x):
    return _scaled_bessel_k(x, 0)


@_function
def k1e(x):
    return _scaled_bessel_k(x, 1)


@_function
def k0(x):
    return _scaled_bessel_k(x, 0) * np.exp(-x)


@_function
def k1(x):
    return _scaled_bessel_k(x, 1) * np.exp(-x)


# of the first kind, by Bessel's integral over a circle; from 25 on by Hankel's series

_NODES = np.arange(128) * (math.pi / 64)
_SINES = np.sin(_NODES)[:, None]


def _integer_orders(x, orders):
    """J(x) for each of these orders, where |x| is at most 25."""
    angles = x * _SINES
    cosine, sine = np.cos(angles), np.sin(angles)
    return [(np.cos(n * _NODES) @ cosine if n % 2 == 0 else np.sin(n * _NODES) @ sine) / 128
            for n in orders]


def _hankel(x, order):
    """The amplitudes of cos and sin of the phase x - (2 order + 1) π / 4, for large x."""
    term = np.ones_like(x)
    parts = [np.ones_like(x), np.zeros_like(x)]
    for k in range(1, 24):
        term = term * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * x)
        parts[k % 2] = parts[k % 2] + (-1) ** (k // 2) * term
    scale = np.sqrt(2 / (math.pi * x))
    return scale * parts[0], scale * parts[1]


def _phase(x, order):
    """cos and sin of x - (2 order + 1) π / 4, from those of x, which are exact for large x."""
    c, s, root = np.cos(x), np.sin(x), math.sqrt(0.5)
    return ((c + s) * root, (s - c) * root) if order == 0 else ((s - c) * root, -(c + s) * root)


def _first_kind(x, order):
    y = np.abs(x)
    close, = _integer_orders(np.minimum(y, 25), [order])
    p, q = _hankel(np.maximum(y, 25), order)
    cosine, sine = _phase(np.where(np.isinf(y), 0, y), order)
    found = np.where(y <= 25, close, p * cosine - q * sine)
    found = np.where(np.isinf(y), np.nan, found)
    return np.where((x < 0) & (order == 1), -found, found)


@_function
def j0(x):
    return _first_kind(x, 0)


@_function
def j1(x):
    return _first_kind(x, 1)


def _neumann(x, order):
    """Y(x) by Neumann's series of Bessel functions, for x up to 25"""
    near = np.clip(x, 1e-300, 25)
    j = _integer_orders(near, range(60))
    logarithm = np.log(near / 2) + _EULER
    if order == 0:
        rest = sum((-1) ** k * j[2 * k] / k for k in range(1, 30))
        return 2 / math.pi * (logarithm * j[0] - 2 * rest)
    rest = sum((-1) ** k * (j[2 * k - 1] - j[2 * k + 1]) / k for k in range(1, 29))
    return 2 / math.pi * (logarithm * j[1] - j[0] / near + rest)      # less the slope of the other


def _bessel_k(x, order):
    p, q = _hankel(np.maximum(x, 25), order)
    cosine, sine = _phase(np.where(np.isinf(x), 0, x), order)
    found = np.where(x <= 25, _neumann(x, order), p * sine + q * cosine)
    found = np.where(np.isposinf(x), np.nan, found)
    return np.where(x > 0, found, np.where(x == 0, -np.inf, np.nan))


@_function
def y0(x):
    return _bessel_k(x, 0)


@_function
def y1(x):
    return _bessel_k(x, 1)


# ---- Airy's function: y'' = x y -----------------------------------------------------------------

_START = (0.355028053887817239, -0.258819403792806798)      # Ai(0), Ai'(0)


def _taylor_step(x, value, slope, step):
    """The solution with `value` and `slope` at x, and its slope, at x + step: Taylor's series."""
    terms = [value, slope * step, x * value / 2 * step ** 2]
    for k in range(3, 40):
        terms.append((x * step ** 2 * terms[k - 2] + step ** 3 * terms[k - 3]) / (k * (k - 1)))
    safe = np.where(step == 0, 1, step)
    slopes = sum(k * term for k, term in enumerate(terms)) / safe
    return sum(terms), np.where(step == 0, slope, slopes)


@functools.cache
def _nodes():
    """Ai and Ai' at 0, -1, …, -20."""
    found = [tuple(map(np.float64, _START))]
    for k in range(20):
        found.append(_taylor_step(np.float64(-k), *found[-1], np.float64(-1.0)))
    return np.array(found).T


def airy(x):
    """Ai(x) and Ai'(x)."""
    return tuple([run(x) for run in (_ai, _ai_slope)])


def _airy(x):
    """By a modified Bessel function on the right, Taylor's series to -20, then asymptotic ones"""
    right = np.maximum(x, 1.0)
    zeta = 2 / 3 * right * np.sqrt(right)
    scale = np.exp(-zeta) / math.pi
    values = [scale * np.sqrt(right / 3) * _scaled_bessel_k(zeta, 1 / 3),
              -scale * right / math.sqrt(3) * _scaled_bessel_k(zeta, 2 / 3)]
    at = np.clip(np.rint(-np.where(np.isnan(x), 0, x)), 0, 20).astype(np.int64)
    middle = _taylor_step(-at.astype(np.float64), *_nodes()[:, at], np.clip(x, -20.5, 1.5) + at)
    y = np.maximum(-x, 20.0)
    left = _airy_oscillating(y)
    found = [np.where(x > 1, r, np.where(x >= -20, m, far))
             for r, m, far in zip(values, middle, left)]
    found[0] = np.where(np.isinf(x), 0, found[0])
    found[1] = np.where(np.isposinf(x), 0, found[1])
    return [np.where(np.isnan(x), x, f) for f in found]


def _airy_oscillating(y):
    """Ai(-y) and Ai'(-y), for large y."""
    zeta = 2 / 3 * y * np.sqrt(y)
    u, sums = np.ones_like(y), [[1.0, 0.0], [1.0, 0.0]]
    for k in range(1, 12):
        u = u * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1) * zeta)
        sign = (-1) ** (k // 2)
        sums[0][k % 2] = sums[0][k % 2] + sign * u
        sums[1][k % 2] = sums[1][k % 2] - sign * u * (6 * k + 1) / (6 * k - 1)
    cosine, sine = _phase(zeta, 0)
    root = np.sqrt(np.sqrt(y))
    return ((cosine * sums[0][0] + sine * sums[0][1]) / (root * math.sqrt(math.pi)),
            (sine * sums[1][0] - cosine * sums[1][1]) * root / math.sqrt(math.pi))


_ai, _ai_slope = _function(lambda x: _airy(x)[0]), _function(lambda x: _airy(x)[1])
_FUNCTIONS["airy"] = airy            # of two results
