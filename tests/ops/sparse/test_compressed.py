"""Compressed rows and columns: there and back, in every layout."""
import numpy as np
import pytest
import scipy.sparse

import flambeau as torch

rng = np.random.RandomState(0)
DENSE = rng.randn(4, 6) * (rng.rand(4, 6) < 0.4)


@pytest.mark.parametrize("name", ["csr", "csc"])
def test_parts_are_scipys(name):
    wanted = getattr(scipy.sparse, f"{name}_matrix")(DENSE)
    found = getattr(torch.tensor(DENSE), f"to_sparse_{name}")()
    outer, inner = (found.crow_indices(), found.col_indices()) if name == "csr" else (
        found.ccol_indices(), found.row_indices())
    assert outer.tolist() == wanted.indptr.tolist() and inner.tolist() == wanted.indices.tolist()
    assert np.array_equal(found.values().numpy(), wanted.data)


@pytest.mark.parametrize("layout,block", [
    (torch.sparse_coo, None), (torch.sparse_csr, None), (torch.sparse_csc, None),
    (torch.sparse_bsr, (2, 3)), (torch.sparse_bsc, (2, 3))])
def test_there_and_back(layout, block):
    x = torch.tensor(DENSE)
    s = x.to_sparse(layout=layout, blocksize=block)
    assert s.layout is layout and torch.equal(s.to_dense(), x)
    assert torch.equal(s.to_sparse_coo().to_dense(), x) if layout is not torch.sparse_coo else True
    stacked = torch.stack([x, x]).to_sparse(layout=layout, blocksize=block) \
        if layout is not torch.sparse_coo else None
    assert stacked is None or torch.equal(stacked.to_dense()[1], x)


def test_double_entries_are_added():
    s = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2))
    assert not s.is_coalesced() and s.coalesce().values().tolist() == [3.0, 3.0]
    assert torch.equal(s.to_dense(), torch.tensor([[0.0, 3.0], [3.0, 0.0]]))
