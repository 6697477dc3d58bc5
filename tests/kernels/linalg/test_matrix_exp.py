"""Exponentials of matrices."""
import numpy as np
import pytest

from flambeau.kernels.linalg.matrix_exp import matrix_exp


@pytest.mark.parametrize("size", [1e-8, 1e-3, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_rotations(size, dtype):
    found = matrix_exp(np.array([[0, -size], [size, 0]], dtype))
    expected = [[np.cos(size), -np.sin(size)], [np.sin(size), np.cos(size)]]
    np.testing.assert_allclose(found, expected, atol=1e-5 if dtype == np.float32 else 1e-11)
    assert found.dtype == dtype


def test_by_eigenvalues(normal):
    a = normal((3, 4, 4))
    a = a + a.swapaxes(-1, -2)
    values, vectors = np.linalg.eigh(a)
    expected = (vectors * np.exp(values)[:, None]) @ vectors.swapaxes(-1, -2)
    np.testing.assert_allclose(matrix_exp(a), expected, rtol=1e-9, atol=1e-9)


def test_nilpotent_and_empty():
    a = np.array([[0.0, 2, 3], [0, 0, 4], [0, 0, 0]])
    np.testing.assert_allclose(matrix_exp(a), np.eye(3) + a + a @ a / 2)
    assert matrix_exp(np.zeros((2, 0, 0))).shape == (2, 0, 0)
    np.testing.assert_array_equal(matrix_exp(np.zeros((3, 3))), np.eye(3))
