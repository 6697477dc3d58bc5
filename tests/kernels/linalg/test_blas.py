"""How many threads the libraries under NumPy take."""
import numpy as np
import pytest

from flambeau.kernels.linalg import blas


def test_modules_without_such_a_library():
    assert blas.controls("math") is None or callable(blas.controls("math")[0])


def test_small_matrices_take_one_thread(normal):
    found = blas.controls("numpy.linalg._umath_linalg")
    if found is None:
        pytest.skip("NumPy's threads cannot be limited")
    read, _ = found
    before, a = read(), normal((4, 4))
    with blas.numpy_for(a), blas.numpy_for(a):
        assert read() == 1
        np.testing.assert_allclose(np.linalg.inv(a) @ a, np.eye(4), atol=1e-10)
    assert read() == before
    with blas.numpy_for(normal((blas.SMALL + 1, 2))):
        assert read() == before
