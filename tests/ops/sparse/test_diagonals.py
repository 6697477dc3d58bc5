"""Matrices out of diagonals: SciPy's."""
import numpy as np
import pytest
import scipy.sparse

import flambeau as torch


@pytest.mark.parametrize("offsets", [[0], [-1, 0, 1], [2, -2]])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_spdiags(offsets, shape):
    rows = np.arange(1.0, 1 + len(offsets) * 4).reshape(len(offsets), 4)
    wanted = scipy.sparse.spdiags(rows, offsets, *shape).toarray()
    found = torch.sparse.spdiags(torch.tensor(rows), torch.tensor(offsets), shape)
    assert np.array_equal(found.to_dense().numpy(), wanted)
