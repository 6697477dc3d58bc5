"""Products that low-rank methods are made of."""

import pytest

import flambeau as torch
from flambeau import _linalg_utils as L


def test_products():
    x = torch.eye(2)
    assert L.matmul(None, x) is x
    assert L.matmul(x.to_sparse() * 2, x).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert L.bform(x, None, x).tolist() == L.qform(x, x).tolist() == x.tolist()
    values, vectors = L.symeig(torch.diag(torch.tensor([1.0, 3.0])), largest=True)
    assert values.tolist() == [3.0, 1.0] and vectors.abs().tolist() == [[0.0, 1.0], [1.0, 0.0]]
    q = L.basis(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert torch.allclose(q.T @ q, x, atol=1e-6)
    assert L.get_floating_dtype(torch.ones(1, dtype=torch.int32)) is torch.float32
    with pytest.raises(TypeError, match="expected Tensor"):
        L.is_sparse(3)
