"""Factorisations of small matrices and of batches: the compiled kernels against NumPy's."""
import numpy as np
import pytest

from flambeau.kernels._extension import native
from flambeau.kernels.linalg import lapack, orthogonal

RANDOM = np.random.default_rng(3)
TYPES = [(np.float32, 2e-5), (np.float64, 1e-12)]
pytestmark = pytest.mark.skipif(native is None, reason="no native kernels here")


def matrices(size, count, dtype):
    strong = 3 * np.sqrt(size) * np.eye(size)
    return (RANDOM.standard_normal((count, size, size)) + strong).astype(dtype)


@pytest.mark.parametrize("dtype,tolerance", TYPES, ids=["single", "double"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 70])
def test_equations(size, dtype, tolerance):
    a, b = matrices(size, 7, dtype), RANDOM.standard_normal((7, size, 3)).astype(dtype)
    x, info = lapack.solve_ex(a, b, True, True)
    assert x.dtype == dtype and not info.any()
    assert np.allclose(a @ x, b, atol=tolerance)
    assert np.allclose(lapack.inv_ex(a, True)[0] @ a, np.eye(size), atol=tolerance)
    lu, pivots, _ = lapack.lu_factor_ex(a, True, True)
    P, L, U = lapack.lu_unpack(lu, pivots, True, True)
    assert np.allclose(P @ L @ U, a, atol=tolerance * size) and np.abs(L).max() <= 1
    part = a / 3 / dtype(np.sqrt(size))             # of which the determinant is near 1
    assert np.allclose(lapack.det(part), np.linalg.det(part.astype(float)), rtol=100 * tolerance)
    sign, logarithm = lapack.slogdet(-a)
    expected = np.linalg.slogdet(-a.astype(float))
    assert (sign == expected[0]).all()
    assert np.allclose(logarithm, expected[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype,tolerance", TYPES, ids=["single", "double"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("size", [1, 3, 8, 16, 17, 40])
def test_cholesky(size, upper, dtype, tolerance):
    a = matrices(size, 5, dtype)
    a = a @ a.swapaxes(-1, -2)
    factor, info = lapack.cholesky_ex(a, upper, True)
    whole = factor.swapaxes(-1, -2) @ factor if upper else factor @ factor.swapaxes(-1, -2)
    assert not info.any() and np.allclose(whole, a, rtol=tolerance, atol=tolerance * a.max())
    assert not np.triu(factor, 1).any() if not upper else not np.tril(factor, -1).any()
    b = RANDOM.standard_normal((5, size, 2)).astype(dtype)
    assert np.allclose(a @ lapack.cholesky_solve(b, factor, upper), b, atol=tolerance * 100)
    half = np.triu(factor) if upper else np.tril(factor)
    for other, is_upper in ((half, upper), (half.swapaxes(-1, -2), not upper)):
        x = lapack.solve_triangular(other, b, is_upper, True, False)
        assert np.allclose(other @ x, b, atol=tolerance)


@pytest.mark.parametrize("size", [3, 16, 20])
def test_failures(size):
    a = np.stack([np.eye(size), np.zeros((size, size)), np.diag([*[1.0] * (size - 1), -1.0])])
    assert lapack.cholesky_ex(a, False, False)[1].tolist() == [0, 1, size]
    x, info = lapack.solve_ex(a, a.copy(), True, False)
    assert info.tolist() == [0, 1, 0] and np.isnan(x[1]).all() and (x[0] == np.eye(size)).all()
    assert lapack.lu_factor_ex(a, True, False)[2].tolist() == [0, 1, 0]
    assert lapack.det(a).tolist() == [1, 0, -1]


QR_SHAPES = [(1, 1), (3, 3), (9, 4), (4, 9), (100, 16), (200, 5), (33, 33), (16, 40)]


@pytest.mark.parametrize("dtype,tolerance", TYPES, ids=["single", "double"])
@pytest.mark.parametrize("shape", QR_SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(shape, mode, dtype, tolerance):
    a = RANDOM.standard_normal((4, *shape)).astype(dtype)
    a[1, :, 0] = 0                                  # nothing to reflect
    q, r = orthogonal.qr(a, mode)
    assert q.dtype == r.dtype == dtype and np.allclose(q @ r, a, atol=tolerance)
    assert np.allclose(q.swapaxes(-1, -2) @ q, np.eye(q.shape[-1]), atol=tolerance)
    assert not np.tril(r, -1).any()
    expected = np.linalg.qr(a[0].astype(float), mode)[1]        # signs too are LAPACK's
    assert np.allclose(r[0], expected, atol=10 * tolerance)


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("shape", [(3, 2), (3, 6), (40, 20), (70, 64)])
def test_reflections_take_both_zeros_for_positive(shape, zero):
    matrix = np.ones(shape)
    matrix[0, 0] = zero
    assert orthogonal.qr(matrix, "reduced")[1][0, 0] < 0 > orthogonal.geqrf(matrix)[0][0, 0]


@pytest.mark.parametrize("dtype,tolerance", TYPES, ids=["single", "double"])
def test_spectra_of_batches(dtype, tolerance):
    a = RANDOM.standard_normal((6, 40, 40)).astype(dtype)
    u, s, vh = orthogonal.svd(a, False)
    assert np.allclose((u * s[:, None]) @ vh, a, atol=10 * tolerance)
    assert np.allclose(orthogonal.svdvals(a), s, atol=10 * tolerance)
    symmetric = a + a.swapaxes(-1, -2)
    values, vectors = orthogonal.eigh(symmetric, "L")
    assert np.allclose(symmetric @ vectors, vectors * values[:, None], atol=50 * tolerance)
