"""Products that are done without BLAS, of every shape around the lengths of vectors."""
import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n, k, m", [
    (1, 128, 1), (5, 16, 1), (64, 17, 1), (1, 33, 7), (4, 4, 4), (6, 9, 11), (16, 16, 16),
    (7, 128, 33), (3, 100, 20), (13, 5, 64), (1, 1000, 300), (300, 1000, 1)])
def test_products_of_small_matrices(n, k, m, dtype):
    random = np.random.RandomState(n + k + m)
    a, b = (random.randn(3, *shape).astype(dtype) for shape in ((n, k), (k, m)))
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    bound = 4 * np.finfo(dtype).eps * (np.abs(a) @ np.abs(b)) + 1e-30
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    for left in (x, x.mT.contiguous().mT):
        for right in (y, y.mT.contiguous().mT):
            assert (np.abs((left @ right).numpy() - exact) <= bound).all()
            assert (np.abs((left[0] @ right[0]).numpy() - exact[0]) <= bound[0]).all()
