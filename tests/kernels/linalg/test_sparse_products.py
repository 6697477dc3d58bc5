import numpy as np
import pytest

import flambeau
from flambeau.kernels.linalg import sparse_products

RANDOM = np.random.default_rng(0)


def sparse(m, n, dtype, count=12):
    """Places in any order, some of them twice."""
    places = np.stack([RANDOM.integers(0, m, count), RANDOM.integers(0, n, count)])
    data = RANDOM.integers(-3, 4, count).astype(dtype)
    dense = np.zeros((m, n), dtype)
    np.add.at(dense, tuple(places), data)
    return places, data, (m, n), dense


@pytest.fixture(params=["the extension", "NumPy", "SciPy"])
def _with(request, monkeypatch):
    if request.param != "the extension":
        monkeypatch.setattr(sparse_products, "_native", None)
    if request.param == "SciPy":
        pytest.importorskip("scipy.sparse")
    elif request.param == "NumPy":
        monkeypatch.setattr(sparse_products, "_scipy_sparse", lambda: None)


@pytest.mark.skipif(sparse_products._native is None, reason="without the native extension")
def test_places_outside_are_refused():
    with pytest.raises(IndexError, match="outside"):
        sparse_products.multiply(np.array([[0], [2]]), np.ones(1), (2, 2), np.ones((2, 2)))


@pytest.mark.usefixtures("_with")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128, np.int64])
@pytest.mark.parametrize("count", [0, 1, 12, 200])
def test_products(dtype, count, monkeypatch):
    *a, dense_a = sparse(5, 4, dtype, count)
    *b, dense_b = sparse(4, 6, dtype, count)
    monkeypatch.setattr(sparse_products, "_AT_ONCE", 30)
    for right in (RANDOM.integers(-3, 4, (4, 7)).astype(dtype), np.arange(4).astype(dtype)):
        found = sparse_products.multiply(*a, right)
        np.testing.assert_array_equal(found, dense_a @ right)
        assert found.dtype == dtype
    places, data = sparse_products.multiply_sparse(*a, *b)
    whole = np.zeros((5, 6), dtype)
    np.add.at(whole, tuple(places), data)
    np.testing.assert_array_equal(whole, dense_a @ dense_b)


def test_what_is_missing_names_the_extra(monkeypatch):
    monkeypatch.setattr(sparse_products, "_scipy_sparse", lambda: None)
    with pytest.raises(ImportError, match=r"spsolve needs SciPy: pip install 'flambeau\[scipy\]'"):
        sparse_products.solve(np.zeros((2, 1), int), np.ones(1), (1, 1), np.ones(1))


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("width", [1, 3, 43])
def test_reductions_of_rows(reduce, dtype, width):
    random = np.random.default_rng(0)
    a = (random.standard_normal((5, 7)) * 9).astype(dtype) * (random.random((5, 7)) < 0.5)
    a[2] = 0                                        # a row without elements
    dense = (random.standard_normal((7, width)) * 9).astype(dtype)
    rows, columns = a.nonzero()
    starts = np.searchsorted(rows, np.arange(6))
    found = sparse_products.reduced(starts, columns, a[rows, columns], dense, reduce)
    for r in range(5):
        terms = a[r, a[r] != 0, None] * dense[a[r] != 0]
        expected = np.zeros(width) if not len(terms) else getattr(
            np, {"amax": "max", "amin": "min"}.get(reduce, reduce))(terms, 0)
        np.testing.assert_allclose(found[r], expected.astype(dtype), rtol=1e-5, atol=1e-5)


def test_the_largest_of_a_row_with_nan_is_nan():
    starts, columns = np.array([0, 2]), np.array([0, 1])
    for reduce in ("amax", "amin"):
        for first, second in ((np.nan, 1.0), (1.0, np.nan)):
            found = sparse_products.reduced(starts, columns, np.ones(2),
                                            np.array([[first], [second]]), reduce)
            assert np.isnan(found).all()


def test_products_of_sparse_matrices_keep_what_cancels():
    a, b = flambeau.tensor([[1.0, -1.0], [0.0, 2.0]]), flambeau.tensor([[3.0, 0.0], [3.0, 1.0]])
    found = (a.to_sparse() @ b.to_sparse()).coalesce()
    assert found.indices().tolist() == [[0, 0, 1, 1], [0, 1, 0, 1]]
    assert found.values().tolist() == [0.0, -1.0, 6.0, 2.0]


@pytest.mark.parametrize("density", [0.004, 0.2])
def test_products_of_sparse_rows_of_any_density(density):
    random = np.random.default_rng(0)
    a, b = ((random.random((60, 60)) < density) * random.integers(-2, 3, (60, 60)) for _ in "ab")
    b = np.concatenate([b, np.zeros((60, 300), b.dtype)], 1)
    found = flambeau.from_numpy(a).double().to_sparse_csr() @ flambeau.from_numpy(
        b).double().to_sparse_csr()
    places = (a != 0).astype(int) @ (b != 0).astype(int) > 0
    assert found.values().shape[0] == places.sum()      # sums that are zero too
    np.testing.assert_array_equal(found.to_dense().numpy(), a @ b)
