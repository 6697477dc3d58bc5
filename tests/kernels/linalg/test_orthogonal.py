"""Factorisations with orthogonal factors, eigenvalues, least squares."""
import numpy as np
import pytest

from flambeau.kernels.linalg import orthogonal


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4), (0, 3), (40, 33)])
@pytest.mark.parametrize("complex_", [False, True])
def test_qr(shape, complex_, normal):
    a = normal(shape) + (1j * normal(shape) if complex_ else 0)
    for mode in ("reduced", "complete"):
        q, r = orthogonal.qr(a, mode)
        np.testing.assert_allclose(q @ r, a, atol=1e-12)
        np.testing.assert_allclose(q.conj().swapaxes(-1, -2) @ q,
                                   np.broadcast_to(np.eye(q.shape[-1]), q.shape[:-2] + (
                                       q.shape[-1],) * 2), atol=1e-12)
        assert not np.tril(r, -1).any()


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_reflectors(left, transpose, normal):
    a = normal((5, 3))
    packed, tau = orthogonal.geqrf(a)
    q = orthogonal.householder_product(packed, tau)
    np.testing.assert_allclose(q @ np.triu(packed[:3]), a, atol=1e-12)
    whole, _ = orthogonal.qr(a, "complete")
    c = normal((5, 2)) if left else normal((2, 5))
    found = orthogonal.ormqr(packed, tau, c, left, transpose)
    factor = whole.T if transpose else whole
    np.testing.assert_allclose(found, factor @ c if left else c @ factor, atol=1e-12)


def test_singular_values(normal):
    a = normal((2, 4, 3))
    for full in (True, False):
        u, s, vh = orthogonal.svd(a, full)
        np.testing.assert_allclose((u[..., :3] * s[..., None, :]) @ vh, a, atol=1e-12)
        assert u.shape == (2, 4, 4 if full else 3) and (np.diff(s) <= 0).all()
    np.testing.assert_allclose(orthogonal.svdvals(a), np.linalg.svd(a, compute_uv=False))


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_only_one_triangle_is_read(uplo, normal):
    a = normal((4, 4))
    whole = np.tril(a) + np.tril(a, -1).T if uplo == "L" else np.triu(a) + np.triu(a, 1).T
    values, vectors = orthogonal.eigh(a, uplo)
    np.testing.assert_allclose(whole @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(orthogonal.eigvalsh(a, uplo), values, atol=1e-12)


def test_eigenvalues_are_complex():
    values, vectors = orthogonal.eig(np.array([[0.0, -1.0], [1.0, 0.0]]))
    assert values.dtype == vectors.dtype == np.complex128
    np.testing.assert_allclose(sorted(values.imag), [-1, 1])
    np.testing.assert_allclose(sorted(orthogonal.eigvals(np.diag([3.0, 1.0])).real), [1, 3])


def test_ranks_and_inverses(normal):
    a = normal((4, 2)) @ normal((2, 3))
    assert orthogonal.matrix_rank(a, None, None, False) == 2
    inverse = orthogonal.pinv(a, None, None, False)
    np.testing.assert_allclose(a @ inverse @ a, a, atol=1e-11)
    np.testing.assert_allclose(inverse, np.linalg.pinv(a, rcond=1e-12), atol=1e-11)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3)])
@pytest.mark.parametrize("driver", ["gels", "gelsd", "gelss", "gelsy"])
def test_least_squares(driver, shape, kind, normal):
    a, b = normal(shape).astype(kind), normal((*shape[:-1], 2)).astype(kind)
    solution, residuals, rank, values = orthogonal.lstsq(a, b, None, driver)
    rest, tolerance = a @ solution - b, 1e-9 if kind == np.float64 else 1e-4
    np.testing.assert_allclose(a.swapaxes(-1, -2).conj() @ rest, 0, atol=tolerance)
    if driver == "gelsy" or shape[-2] <= shape[-1]:
        assert residuals.shape == (0,)
    else:
        np.testing.assert_allclose(residuals, (abs(rest) ** 2).sum(-2), atol=tolerance)
    assert (rank == min(shape[-2:])).all()
    assert rank.shape == ((0,) if driver == "gels" else shape[:-2])
    if driver in ("gelsd", "gelss"):
        np.testing.assert_allclose(values, np.linalg.svd(a, compute_uv=False), atol=tolerance)
    else:
        assert values.shape == (0,)


def test_least_squares_of_a_lower_rank():
    a, b = np.stack([np.eye(3), np.ones((3, 3))]), np.ones((2, 3, 1))
    with pytest.raises(RuntimeError, match=r"^torch.linalg.lstsq: \(Batch element 1\): The least "
                       r"squares solution .* full rank \(error code: 2\).$"):
        orthogonal.lstsq(a, b, None, "gels")
    for driver in ("gelsy", "gelsd", "gelss"):
        solution, residuals, rank, _ = orthogonal.lstsq(a, b, None, driver)
        assert rank.tolist() == [3, 1] and residuals.size == 0
        np.testing.assert_allclose(solution[1], np.full((3, 1), 1 / 3))
