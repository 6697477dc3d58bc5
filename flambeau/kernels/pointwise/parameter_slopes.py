"""Derivatives, of any order, of special functions by their parameters; computed in float64.

The incomplete gamma function: P(a, x) is the integral of the density t^(a-1) e^-t / Γ(a) from 0
to x. Its n-th derivative by a has the same integrand times a polynomial in log t, which of the
first order has one sign on each side of the median. So the integral runs away from x, to 0 or to
infinity, on whichever side has no peak, by a double-exponential rule; where x is small, the power
series does better. The Hurwitz zeta function: by Euler and Maclaurin's formula, in powers of a
step of s.
"""

import math

import numpy as np

from flambeau.kernels import quiet
from flambeau.kernels.declaration import special

_SMALL, _TERMS, _STEP = 3.0, 45, 0.07
_NODES = np.arange(-4.2, 3.6, _STEP)[:, None]
_PART = 1 << 12             # elements at once, each with all terms or nodes
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
              43867 / 798, -174611 / 330, 854513 / 138, -236364091 / 2730)


def _moments(n, cumulants):
    """The moments of orders n - 1 and n that belong to these cumulants."""
    found = [np.ones_like(cumulants[0])]
    for m in range(1, n + 1):
        found.append(sum(math.comb(m - 1, k - 1) * cumulants[k - 1] * found[m - k]
                         for k in range(1, m + 1)))
    return found[n - 1], found[n]


def _gamma_series(a, x, n):
    """Σ x^(k+1) Γ(a + 1) / Γ(a + k + 1) times the n-th derivative's factor."""
    polygamma = special("polygamma")
    above = a + np.arange(_TERMS)[:, None]
    terms = x / above
    terms[0] = x
    cumulants = [-polygamma(j, above + 1) for j in range(n)]
    cumulants[0] += np.log(x)
    return (np.cumprod(terms, 0) * _moments(n, cumulants)[1]).sum(0)


def _gamma_tail(a, x, n):
    """The same by the integral over t = x e^v, v from 0 to -∞ where x < a, else to ∞."""
    polygamma = special("polygamma")
    side = np.where(x < a, -1.0, 1.0)
    cumulants = [-polygamma(j, a + 1) for j in range(n)]
    cumulants[0] += np.log(x)
    shrink = np.exp(-_NODES)
    w = np.exp(_NODES - shrink) / (np.abs(a - x) + np.sqrt(x))
    v = side * w
    before, here = _moments(n, [cumulants[0] + v, *cumulants[1:]])
    density = np.exp((a - x) * v - x * (np.expm1(v) - v))
    return -side * x * _STEP * (w * (1 + shrink) * density * (a * here + n * before)).sum(0)


def _in_parts(function, a, x, n):
    """The function of rows of elements, so many at a time."""
    return np.concatenate([function(a[i:i + _PART], x[i:i + _PART], n)
                           for i in range(0, len(a), _PART)] or [x])


@quiet
def gamma_slope(a, x, n, relative):
    """The n-th derivative of P(a, x) by a, n > 0; `relative` to the density at x."""
    gammaln = special("gammaln")
    dtype = a.dtype
    a, x = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
    inside, small = (a >= 0) & (x > 0) & (x < np.inf), x < _SMALL
    b, found = np.where(inside, a, 1.0), np.zeros(x.shape)
    for function, where in ((_gamma_series, inside & small), (_gamma_tail, inside & ~small)):
        found[where] = _in_parts(function, b[where], x[where], n)
    y = np.where(inside, x, 1.0)
    found = found / b if relative else \
        found * np.exp((b - 1) * np.log(y) - y - gammaln(b + 1))
    outside = np.where((a >= 0) & (x >= 0), 0.0, np.nan)
    return np.where(inside, found, outside).astype(dtype)


def _times(p, q):
    """The product of two series, to the terms that both have."""
    return [sum(p[j] * q[i - j] for j in range(i + 1)) for i in range(len(p))]


@quiet
def zeta_slope(s, q, n):
    """The n-th derivative by s of the Hurwitz zeta function Σ (k + q)^-s, for s > 1 and q > 0."""
    dtype = s.dtype
    s, q = np.broadcast_arrays(s.astype(np.float64), q.astype(np.float64))
    count = 16
    total = sum((-np.log(q + k)) ** n * (q + k) ** -s for k in range(count))
    end, zero = q + count, np.zeros_like(s)
    power = [end ** -s * (-np.log(end)) ** i / math.factorial(i) for i in range(n + 1)]
    integral = _times(power, [end * (-1) ** i / (s - 1) ** (i + 1) for i in range(n + 1)])
    rising = [s, zero + 1.0, *[zero] * n][:n + 1]               # s (s + 1) … (s + 2j)
    correction = power[n] / 2
    for j, number in enumerate(_BERNOULLI, 1):
        correction += (_times(power, rising)[n] * number / math.factorial(2 * j)
                       / end ** (2 * j - 1))
        for k in (2 * j - 1, 2 * j):
            rising = _times(rising, [s + k, zero + 1.0, *[zero] * n][:n + 1])
    found = total + math.factorial(n) * (integral[n] + correction)
    return np.where((s > 1) & (q > 0), found, np.where((s == 1) & (q > 0), -((-1.0) ** (n + 1))
                    * np.inf, np.nan)).astype(dtype)
