"""Fourier transforms: the native kernels against NumPy's, for lengths of every kind."""
import numpy as np
import pytest

from flambeau.kernels.declaration import native
from flambeau.kernels.linalg import fourier

LENGTHS = [1, 2, 3, 4, 6, 7, 8, 13, 15, 16, 22, 34, 37, 64, 77, 130, 512, 513, 600, 1001, 2048,
           2310, 4096, 4394]
TYPES = [(np.float32, np.complex64, 2e-6), (np.float64, np.complex128, 4e-15)]
RANDOM = np.random.default_rng(0)
pytestmark = pytest.mark.skipif(native("c2c") is None, reason="no native kernels here")


def close(x, y, tolerance):
    assert x.dtype == y.dtype and x.shape == y.shape
    assert np.abs(x - y).max() <= tolerance * np.sqrt((np.abs(y) ** 2).mean())


@pytest.mark.parametrize("real,complex_,tolerance", TYPES, ids=["single", "double"])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("rows", [1, 3, 19])
def test_transforms(n, rows, real, complex_, tolerance):
    x = RANDOM.standard_normal((rows, n)).astype(real)
    z = (x + 1j * RANDOM.standard_normal((rows, n))).astype(complex_)
    for forward in (True, False):
        for part, axis in ((z, 1), (z.T.copy(), 0)):
            close(fourier.c2c(part, axis, forward, 0.5),
                  fourier.c2c.reference(part, axis, forward, 0.5), tolerance)
    close(fourier.r2c(x, 2.0), fourier.r2c.reference(x, 2.0), tolerance)
    half = z[:, :n // 2 + 1].copy()
    close(fourier.c2r(half, n, 0.5), fourier.c2r.reference(half, n, 0.5), tolerance)


def test_middle_dimension():
    z = RANDOM.standard_normal((3, 6, 37)) + 1j
    close(fourier.c2c(z, 1, True, 1.0), np.fft.fft(z, axis=1), 4e-15)


def test_which_lengths_are_native():
    for n in (*range(1, 40), 127, 1021):
        for x, arguments, kernel in ((np.ones(n, complex), (0, True, 1.0), fourier.c2c),
                                     (np.ones(n), (1.0,), fourier.r2c),
                                     (np.ones(n // 2 + 1, complex), (n, 1.0), fourier.c2r)):
            assert kernel.native(x, *arguments) is not NotImplemented
