"""Discrete Fourier transforms along one dimension: sums times a factor.

The native kernels take lengths whose prime factors are at most 13, and real signals of even length;
NumPy's pocketfft takes the rest.
"""

import numpy as np

from flambeau.kernels.declaration import kernel


def _typed(result, like):
    """The result in the precision of the argument: older NumPy computes all in double."""
    real = like.real.dtype
    return result.astype(np.result_type(real, np.complex64) if result.dtype.kind == "c" else real,
                         copy=False)


def _scaled(result, like, factor):
    result = _typed(result, like)
    return result if factor == 1 else np.multiply(result, result.real.dtype.type(factor), result)


@kernel
def c2c(x, axis, forward, factor):
    """X_k = factor Σ_j x_j exp(∓2πi jk/n), minus forward."""
    found = np.fft.fft(x, axis=axis) if forward else np.fft.ifft(x, axis=axis, norm="forward")
    return _scaled(found, x, factor)


@kernel
def r2c(x, factor):
    """The first n//2 + 1 values of the forward transform of real x, along its last dimension."""
    return _scaled(np.fft.rfft(x), x, factor)


@kernel
def c2r(x, size, factor):
    """The backward transform to `size` real values, along the last dimension."""
    return _scaled(np.fft.irfft(x, size, norm="forward"), x, factor)
