"""How samples move with the parameters of their distributions (reparametrised gradients).

A sample x at a fixed quantile moves by dx/da = -(dF/da) / (dF/dx), F being the distribution
function (Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, 2018). For the beta
distribution F is a power series with positive terms, and its derivative the same series with each
term times a difference of digammas; it is summed here in float64. The gamma distribution's is in
`parameter_slopes`.
"""

import numpy as np

from flambeau.kernels import quiet
from flambeau.kernels.declaration import special

_TERMS, _BLOCK = 20_000, 32         # at most; so many at once


def _sum(x, top, bottom, weight, rise):
    """The sum over n of t(n) w(n): t(0) = 1, t(n + 1) = t(n) x (top + n) / (bottom + n), and
    w(0) = weight, w(n + 1) = w(n) + rise(n)."""
    total, largest, term = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    for start in range(0, _TERMS, _BLOCK):
        n = np.arange(start, start + _BLOCK)[:, None]
        steps, rises = x * (top + n) / (bottom + n), rise(n)
        terms = term * np.cumprod(np.concatenate([np.ones_like(x)[None], steps]), 0)
        weights = weight + np.cumsum(np.concatenate([np.zeros_like(x)[None], rises]), 0)
        total += (terms[:-1] * weights[:-1]).sum(0)
        largest = np.maximum(largest, terms[:-1].max(0))
        term, weight = terms[-1], weights[-1]
        if not ((term > 1e-18 * largest) | (steps[-1] > 1)).any():
            break
    return total


def _from_zero(x, a, c):
    digamma = special("digamma")
    return x / a * _sum(x, c, a + 1, digamma(a + 1) - digamma(c) - np.log(x),
                        lambda n: 1 / (a + 1 + n) - 1 / (c + n))


def _from_one(x, a, c):
    digamma = special("digamma")
    b = c - a
    return x / b * _sum(1 - x, c, b + 1, np.log(x) - digamma(a) + digamma(c),
                              lambda n: 1 / (c + n))


@quiet
def dirichlet_grad(sample, alpha, total):
    """dx/d(alpha) / (1 - x) of `sample`, x, of the beta distribution (alpha, total - alpha)."""
    x, a, c = (array.astype(np.float64) for array in np.broadcast_arrays(sample, alpha, total))
    low, found = x < (a + 1) / (c + 2), np.empty(x.shape)
    for function, where in ((_from_zero, low), (_from_one, ~low)):
        if where.any():
            found[where] = function(x[where], a[where], c[where])
    return found.astype(sample.dtype)
