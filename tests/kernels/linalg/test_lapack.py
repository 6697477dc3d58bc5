"""Linear algebra by LAPACK: layouts that are read without a copy, and numbers of threads."""
import numpy as np
import pytest

from flambeau.kernels.linalg import blas, lapack, matrix_exp, orthogonal

RANDOM = np.random.default_rng(0)
TYPES = [np.float32, np.float64, np.complex64, np.complex128]


def matrix(n, dtype):
    a = RANDOM.standard_normal((n, n))
    return (a + 1j * RANDOM.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else a
            ).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_cholesky(dtype, upper, layout, lead):
    a = matrix(6, dtype)
    a = a @ a.conj().T + 6 * np.eye(6, dtype=dtype)
    read = np.array(np.triu(a) if upper else np.tril(a), order=layout)
    factor, info = lapack.cholesky_ex(np.broadcast_to(read, (*lead, 6, 6)), upper, False)
    adjoint = factor.conj().swapaxes(-1, -2)
    product = adjoint @ factor if upper else factor @ adjoint
    np.testing.assert_allclose(product, np.broadcast_to(a, product.shape), atol=1e-4)
    assert not info.any() and info.shape == lead
    assert factor.dtype == dtype and factor.strides[-2] == factor.itemsize


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_triangular(dtype, upper, unit, layout):
    a = matrix(5, dtype) + 4 * np.eye(5, dtype=dtype)
    b = matrix(5, dtype)[:, :3]
    before = b.copy()
    x = lapack.solve_triangular(np.array(a, order=layout), b, upper, True, unit)
    whole = np.triu(a, 1) if upper else np.tril(a, -1)
    whole = whole + (np.eye(5) if unit else np.diag(np.diag(a)))
    np.testing.assert_allclose(whole @ x, b, atol=1e-4)
    np.testing.assert_array_equal(b, before)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lead", [(), (2, 3), (0,)])
@pytest.mark.parametrize("columns", [1, 3, 9])
def test_triangular_batches(dtype, lead, columns):
    random = np.random.default_rng(0)
    a = (random.standard_normal((*lead, 5, 5)) + 4 * np.eye(5)).astype(dtype)
    for b in (random.standard_normal((*lead, 5, columns)), random.standard_normal((5, columns))):
        for matrix in (a, a[(0,) * len(lead)] if 0 not in lead else a):
            x = lapack.solve_triangular(matrix, b.astype(dtype), True, True, False)
            assert x.shape == (np.triu(matrix) @ x).shape
            np.testing.assert_allclose(np.triu(matrix) @ x, np.broadcast_to(b, x.shape), atol=1e-4)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1e-3, 0.1, 0.5, 2.0, 5.0, 40.0])
def test_matrix_exp(dtype, size):
    a = matrix(4, dtype)
    a = np.stack([a, a.T * 0.01]) * dtype(size / 4)
    values, vectors = np.linalg.eig(a.astype(np.complex128))
    expected = vectors * np.exp(values)[:, None] @ np.linalg.inv(vectors)
    unit = np.finfo(dtype).eps * 4e2 * (1 + size)
    found = matrix_exp.matrix_exp(a)
    assert found.dtype == dtype
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=0, atol=unit * np.abs(other).max())
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    np.testing.assert_allclose(matrix_exp._matrix_exp(wide).astype(dtype), found, rtol=unit,
                               atol=unit * np.abs(found).max())


def test_matrix_exp_of_what_is_not_finite():
    a = np.stack([np.eye(2), np.full((2, 2), np.nan), np.diag([np.inf, 0]), np.diag([710.0, 0])])
    for found in (matrix_exp.matrix_exp(a), matrix_exp._matrix_exp(a)):
        assert np.isnan(found[1:3]).all() and np.isinf(found[3, 0, 0])
        np.testing.assert_allclose(found[0], np.eye(2) * np.e)


def test_small_matrices_take_one_thread_and_leave_the_number_as_it_was():
    found, context = blas.controls("numpy.linalg._umath_linalg"), blas.numpy_for
    if found is None:
        pytest.skip("this BLAS does not tell its number of threads")
    get, put = found
    before = get()
    put(2)
    try:
        several = get()
        with context(np.eye(3)):
            assert get() == 1
            with context(np.eye(3)):
                assert get() == 1
            assert get() == 1
        with context(np.ones((1, blas.SMALL + 1))):
            assert get() == several
        with pytest.raises(ValueError), context(np.eye(3)):
            raise ValueError
        assert get() == several
    finally:
        put(before)


@pytest.mark.parametrize("call", [
    lambda a: matrix_exp.matrix_exp(a),
    lambda a: lapack.cholesky_ex(a @ a.swapaxes(-1, -2), True, False),
    lambda a: lapack.lu_factor_ex(a, True, False),
    lambda a: lapack.ldl_factor_ex(a, False, False),
    lambda a: lapack.ldl_solve(*lapack.ldl_factor_ex(a, False, False)[:2], a, False),
    lambda a: lapack.solve_triangular(a, a, True, True, False),
    lambda a: orthogonal.lstsq(a, a, None, "gelsd"),
    lambda a: orthogonal.ormqr(a, a[..., 0], a, True, True)])
@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (1, 0, 2)])
def test_the_order_of_dimensions_in_memory_does_not_matter(call, order):
    a = np.random.default_rng(0).standard_normal((3, 3, 3)) + 3 * np.eye(3)
    given = np.ascontiguousarray(a.transpose(order)).transpose(np.argsort(order))
    for found, expected in zip(call(given), call(a)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_pivots_and_factors_in_any_order():
    a = np.random.default_rng(0).standard_normal((2, 3, 4, 4)) + 3 * np.eye(4)
    ld, pivots, _ = lapack.ldl_factor_ex(a, False, False)
    turned = np.asfortranarray(pivots)
    np.testing.assert_array_equal(lapack.ldl_solve(ld, turned, a, False),
                                  lapack.ldl_solve(ld, pivots, a, False))
    h, tau = orthogonal.geqrf(a)
    np.testing.assert_array_equal(orthogonal.ormqr(h, np.asfortranarray(tau), a, True, False),
                                  orthogonal.ormqr(h, tau, a, True, False))
