"""NumPy's and Python's twins of the native random kernels (csrc/kernels/creation/random.cpp).

All take the words of a stream (`creation.random.Stream`), which they advance, and fill a
contiguous one-dimensional `out`. The numbers are those of the native kernels to the last bit:
logarithms and their like are the C library's, through `math`, and what is multiplied and added in
one step there (a fused multiply-add) is so here.
"""

import math
import threading

import numpy as np

_WORDS = 624
_drawing = threading.Lock()


def seed(words, value):
    """Start a stream from a `value` of 32 bits; `words` are zero."""
    for k in range(_WORDS):
        words[k] = value
        value = (1812433253 * (value ^ (value >> 30)) + k + 1) & 0xFFFFFFFF


# The draws


def _draw32(words, n):
    """The next `n` draws of 32 bits, made by NumPy's twister."""
    twister = np.random.MT19937(0)
    with _drawing:
        used = int(words[_WORDS]) or _WORDS  # a fresh seed has no valid word yet
        inner = {"key": words[:_WORDS], "pos": used}
        twister.state = {"bit_generator": "MT19937", "state": inner}
        draws = twister.random_raw(n).astype(np.uint32)
        if n:
            after = twister.state["state"]
            words[:_WORDS] = after["key"]
            words[_WORDS] = after["pos"]
    return draws


def _draw64(words, n):
    halves = _draw32(words, 2 * n).astype(np.uint64)
    return halves[0::2] << np.uint64(32) | halves[1::2]


def raw(words, out):
    """Random bits; of the two draws that 64 bits take, the upper half comes first."""
    out[:] = _draw32(words, out.size) if out.itemsize == 4 else _draw64(words, out.size)


def _units(words, n, dtype=np.float64):
    """Uniform numbers in [0, 1): as many random bits as `dtype` has digits."""
    if dtype == np.float32:
        return (_draw32(words, n) & np.uint32(0xFFFFFF)).astype(np.float32) * np.float32(2.0**-24)
    return (_draw64(words, n) & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53


class _Units:
    """Uniform numbers one by one, for the samplers that cannot say how many they need.

    Draws are made in advance; on leaving, the stream is put behind the last one used.
    """

    def __init__(self, words):
        self.words, self.start, self.used, self.ahead = words, words.copy(), 0, iter(())

    def __enter__(self):
        return self

    def __call__(self):
        self.used += 1
        for number in self.ahead:
            return number
        self.ahead = iter(_units(self.words, 512).tolist())
        return next(self.ahead)

    def normal(self):
        """A normal number, of which every second was kept from the last."""
        words = self.words
        if words[_WORDS + 1]:
            words[_WORDS + 1] = 0
            return float(words[_WORDS + 2 :].view(np.float64)[0])
        turn, size = self(), self()
        radius, angle = math.sqrt(-2 * math.log1p(-size)), 2 * math.pi * turn
        words[_WORDS + 1] = 1
        words[_WORDS + 2 :].view(np.float64)[0] = radius * math.sin(angle)
        return radius * math.cos(angle)

    def __exit__(self, *error):
        self.words[: _WORDS + 1] = self.start[: _WORDS + 1]
        _draw32(self.words, 2 * self.used)


# Arithmetic as the native kernels do it


def _libm(function, x):
    return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def _log(x):
    return -math.inf if x == 0 else math.log(x)


def _fma(a, b, c):
    """a * b + c, rounded once."""
    if np.result_type(a, b, c) == np.float32:
        return _fma32(a, b, c)
    high, low = _two_product(a, b)
    total, rest = _two_sum(high, c)
    return total + (rest + low)


def _fma32(a, b, c):
    # the product is exact in float64; a sum rounded to odd there rounds right to float32
    product, c = np.multiply(a, b, dtype=np.float64), np.float64(c)
    total, rest = _two_sum(product, c)
    bits = np.atleast_1d(total).view(np.int64)
    even = np.atleast_1d(rest != 0) & (bits & 1 == 0)
    step = np.where(np.atleast_1d((rest > 0) == (total > 0)), 1, -1)
    odd = np.where(even, bits + step, bits).view(np.float64)
    return odd.astype(np.float32).reshape(np.shape(total))


def _two_sum(a, b):
    """a + b, and what rounding took from it."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a, b):
    """a * b, and what rounding took from it (Dekker)."""
    product = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _halves(a):
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return high, a - high


# Uniform and normal numbers


def uniform(words, out, low, high):
    """Uniform numbers in [low, high); one that was rounded to `high` becomes `low`."""
    numbers = _units(words, out.size, out.dtype)
    low, high = out.dtype.type(low), out.dtype.type(high)
    if (low, high) != (0, 1):
        numbers = _fma(numbers, high - low, low)
        numbers[numbers == high] = low
    out[:] = numbers


def normal_blocks(words, out, mean, std):
    """Normal numbers, 16 at a time; if some are left, the last 16 are drawn anew."""
    mean, std = out.dtype.type(mean), out.dtype.type(std)
    whole = out.size // 16 * 16
    numbers = _units(words, out.size, out.dtype)
    out[:whole] = _box_muller(numbers[:whole], mean, std)
    if whole != out.size:
        out[-16:] = _box_muller(_units(words, 16, out.dtype), mean, std)


def _box_muller(numbers, mean, std):
    blocks = numbers.reshape(-1, 2, 8)
    sizes, turns = 1 - blocks[:, 0], blocks[:, 1]
    if numbers.dtype == np.float32:
        radius = np.sqrt(np.float32(-2) * _log_poly(sizes))
        sine, cosine = _sincos_poly(np.float32(2 * math.pi) * turns)
    else:
        radius, angle = np.sqrt(-2 * _libm(math.log, sizes)), 2 * math.pi * turns
        sine, cosine = _libm(math.sin, angle), _libm(math.cos, angle)
    pair = (_fma(radius * cosine, std, mean), _fma(radius * sine, std, mean))
    return np.stack(pair, 1).reshape(-1)


def _horner(x, coefficients):
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = _fma(total, x, np.float32(c))
    return total


def _log_poly(x):
    """Logarithm in float32 of normal numbers, by the polynomial of Moshier's Cephes library."""
    f = np.float32
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 0x7F).astype(f) + f(1)
    x = ((bits & ~np.int32(0x7F800000)) | np.int32(0x3F000000)).view(f)
    small = x < f(0.707106781186547524)
    exponent -= small
    x = (x - f(1)) + np.where(small, x, f(0))
    square = x * x
    y = x * _horner(x, (
        7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1))
    y = _fma(y, square, exponent * f(-2.12194440e-4))
    y = _fma(-square, f(0.5), y)
    return _fma(exponent, f(0.693359375), x + y)


def _sincos_poly(x):
    """Sine and cosine in float32 of numbers in [0, 2 pi], likewise."""
    f = np.float32
    octant = ((x * f(1.27323954473516)).astype(np.int32) + 1) & ~1
    y = octant.astype(f)
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):
        x = _fma(y, f(part), x)
    z = x * x
    c = z * _horner(z, (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2))
    c = _fma(c, z, z * f(-0.5)) + f(1)
    s = z * _horner(z, (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1))
    s = _fma(s, x, x)
    swap = octant & 2 != 0
    sine, cosine = np.where(swap, c, s), np.where(swap, s, c)
    return np.where(octant & 4, -sine, sine), np.where((octant - 2) & 4, cosine, -cosine)


def _pairs(words, n):
    """`n` standard normal numbers, in pairs; one may come from the last call, one be kept."""
    numbers = np.empty(n)
    kept = int(bool(words[_WORDS + 1] and n))
    if kept:
        numbers[0] = words[_WORDS + 2 :].view(np.float64)[0]
        words[_WORDS + 1] = 0
    pairs = (n - kept + 1) // 2
    turns, sizes = _units(words, 2 * pairs).reshape(-1, 2).T
    radius, angle = np.sqrt(-2 * _libm(math.log1p, -sizes)), 2 * math.pi * turns
    both = np.stack((radius * _libm(math.cos, angle), radius * _libm(math.sin, angle)), 1).ravel()
    numbers[kept:] = both[: n - kept]
    if both.size > n - kept:
        words[_WORDS + 1] = 1
        words[_WORDS + 2 :].view(np.float64)[0] = both[-1]
    return numbers


def normal_pairs(words, out, mean, std):
    """Normal numbers, computed in float64."""
    out[:] = _fma(_pairs(words, out.size), std, mean)


def log_normal(words, out, mean, std):
    """Exponentials of normal numbers."""
    out[:] = _libm(_exp, _fma(_pairs(words, out.size), std, mean))


def _exp(x):
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


# Other distributions of one number


def bernoulli(words, out, p, value):
    """`value` with probability `p`, else 0."""
    out[:] = np.where(_units(words, out.size) < p, out.dtype.type(value), out.dtype.type(0))


def integers(words, out, count, base):
    """base + bits % count; from 2**28 on, 64 bits."""
    draw = _draw64 if count >= 1 << 28 else _draw32
    bits = draw(words, out.size).astype(np.uint64)
    out[:] = (bits % np.uint64(count) + np.uint64(base % (1 << 64))).view(np.int64)


def permutation(words, out):
    """0..n-1, each element in turn exchanged with a random one behind it (Fisher and Yates)."""
    n = out.size
    draw = _draw64 if n >= 0xFFFFFFFF // 20 else _draw32
    left = np.arange(n, 1, -1).astype(np.uint64)
    steps = draw(words, max(n - 1, 0)) % left
    order = list(range(n))
    for i, step in enumerate(steps.tolist()):
        order[i], order[i + step] = order[i + step], order[i]
    out[:] = order


def cauchy(words, out, median, sigma):
    """The tangent of a uniform angle."""
    out[:] = _fma(_libm(math.tan, math.pi * (_units(words, out.size) - 0.5)), sigma, median)


def exponential(words, out, rate):
    """The logarithm of a uniform number, scaled."""
    out[:] = -1 / rate * _libm(math.log1p, -_units(words, out.size))


def geometric(words, out, p):
    """A rounded exponential number."""
    out[:] = np.ceil(_libm(_log, _units(words, out.size)) / math.log1p(-p))


# Samplers by rejection. The parameters are of `out`'s dtype, and so is arithmetic with them alone;
# everything else is float64.


def _each(words, out, sample, *parameters):
    with _Units(words) as units:
        for i, values in enumerate(zip(*parameters)):
            out[i] = sample(units, *values)


def poisson(words, out, rate):
    """Poisson counts."""
    _each(words, out, _poisson, rate.astype(np.float64).tolist())


def _poisson(units, rate):
    if rate == 0:
        return 0
    if rate >= 10:
        return _poisson_by_rejection(units, rate)
    bound, product, k = math.exp(-rate), units(), 0
    while product > bound:
        product *= units()
        k += 1
    return k


def _poisson_by_rejection(units, rate):
    """Transformed rejection with squeeze (Hörmann 1993, PTRS)."""
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha, v_r = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = units() - 0.5, units()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43) if us else -1
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        score = _log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if score <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def binomial(words, out, count, p):
    """Binomial counts."""
    _each(words, out, _binomial, count, p)


def _binomial(units, count, p):
    if count <= 0 or p <= 0:
        return 0
    if p >= 1:
        return count
    if p != p:
        return p
    q = p if p <= 0.5 else 1 - p
    sampler = _binomial_by_rejection if count * q >= 10 else _binomial_by_gaps
    k = sampler(units, count, q)
    return k if p <= 0.5 else float(count) - k


def _binomial_by_gaps(units, count, p):
    """Geometric gaps from one success to the next."""
    total, k, scale = 0, 0, float(np.log1p(-p))
    while True:
        total += math.ceil(min(_log(units()) / scale, 2.0**62))
        if total > count:
            return k
        k += 1


_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287)


def _stirling_tail(k):
    """log(k!) less Stirling's formula."""
    if k <= 9:
        return _STIRLING[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _binomial_by_rejection(units, count, p):
    """Transformed rejection with squeeze (Hörmann 1993, BTRS)."""
    deviation, center = math.sqrt(count * p * (1 - p)), float(count * p) + 0.5
    m, r = math.floor((count + 1) * p), float(p / (1 - p))
    count, p = float(count), float(p)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    v_r, alpha = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation
    while True:
        u, v = units() - 0.5, units()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + center) if us else -1
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or k > count:
            continue
        bound = ((m + 0.5) * math.log((m + 1) / (r * (count - m + 1)))
                 + (count + 1) * math.log((count - m + 1) / (count - k + 1))
                 + (k + 0.5) * math.log(r * (count - k + 1) / (k + 1))
                 + _stirling_tail(m) + _stirling_tail(count - m)
                 - _stirling_tail(k) - _stirling_tail(count - k))
        if _log(v * alpha / (a / (us * us) + b)) <= bound:
            return k


_THIRD, _SQUEEZE = np.float32(1) / np.float32(3), float(np.float32(0.0331))


def gamma(words, out, alpha):
    """Gamma numbers of scale 1."""
    _each(words, out, _gamma, alpha)


def _gamma(units, alpha):
    """A transformed normal number and a squeeze (Marsaglia and Tsang 2000)."""
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = math.pow(1 - units(), float(1 / alpha))
        alpha = alpha + alpha.dtype.type(1)
    d = float(alpha - alpha.dtype.type(_THIRD))
    c = 1 / math.sqrt(9 * d)
    while True:
        x = units.normal()
        if (y := 1 + c * x) <= 0:
            continue
        v, u, square = y * y * y, 1 - units(), x * x
        if u < 1 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1 - v + math.log(v)):
            return scale * d * v
