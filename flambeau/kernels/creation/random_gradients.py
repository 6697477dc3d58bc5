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

_TERMS = 20_000


def _sum(term, ratio, weight):
    """The sum over n of t(n) weight(n), t(0) being `term` and t(n + 1) = t(n) ratio(n)."""
    total, largest = np.zeros_like(term), np.zeros_like(term)
    for n in range(_TERMS):
        total += term * weight(n)
        largest = np.maximum(largest, term)
        step = ratio(n)
        term = term * step
        if not ((term > 1e-18 * largest) | (step > 1)).any():
            break
    return total


@quiet
def dirichlet_grad(sample, alpha, total):
    """dx/d(alpha) / (1 - x) of `sample`, x, of the beta distribution (alpha, total - alpha)."""
    digamma = special("digamma")
    x, a, c = (array.astype(np.float64) for array in np.broadcast_arrays(sample, alpha, total))
    b, logarithm = c - a, np.log(x)
    low = x < (a + 1) / (c + 2)
    x0, x1 = np.where(low, x, 0.0), np.where(low, 0.0, 1 - x)
    left = x0 / a * _sum(
        np.ones_like(x), lambda n: x0 * (c + n) / (a + 1 + n),
        lambda n: digamma(a + 1 + n) - digamma(c + n) - logarithm)
    right = x / b * _sum(
        np.ones_like(x), lambda n: x1 * (c + n) / (b + 1 + n),
        lambda n: logarithm - digamma(a) + digamma(c + n))
    return np.where(low, left, right).astype(sample.dtype)
