"""Sparse tensors from their parts: sizes that follow, and what is checked."""
import pytest

import flambeau as torch


def test_the_size_follows_from_the_indices():
    s = torch.sparse_coo_tensor([[0, 2], [1, 0]], [1.0, 2.0])
    assert s.shape == (3, 2) and s.dtype is torch.float32 and s._nnz() == 2
    hybrid = torch.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]])
    assert hybrid.shape == (3, 2) and (hybrid.sparse_dim(), hybrid.dense_dim()) == (1, 1)
    assert torch.sparse_csr_tensor([0, 1, 2], [0, 3], [1, 2]).shape == (2, 4)


@pytest.mark.parametrize("make,said", [
    (lambda: torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,), check_invariants=True), "size is"),
    (lambda: torch.sparse_coo_tensor([[-1]], [1.0], (3,), check_invariants=True), "negative"),
    (lambda: torch.sparse_csr_tensor([0, 2], [0], [1.0], check_invariants=True), "nnz|crow"),
    (lambda: torch.sparse_csr_tensor([0, 1], [5], [1.0], (1, 3), check_invariants=True),
     "col_indices")])
def test_invariants(make, said):
    with pytest.raises(RuntimeError, match=said):
        make()


def test_gradients_reach_the_values():
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    s = torch.sparse_coo_tensor([[0, 1]], values, (3,))
    (s.to_dense() * torch.tensor([3.0, 4.0, 5.0])).sum().backward()
    assert values.grad.tolist() == [3.0, 4.0]


def test_parts_are_shared():
    where, values = torch.tensor([[2]]), torch.tensor([5.])
    s = torch.sparse_coo_tensor(where, values, (3,))
    where[0, 0], values[0] = 0, 6.
    assert s.to_dense().tolist() == [6., 0., 0.]


def test_products_are_appended():
    s = torch.tensor([[0., 1.], [2., 0.]]).to_sparse()
    found = torch.saddmm(s, s, torch.ones(2, 2), beta=3, alpha=2)
    assert found._indices().tolist() == [[0, 1, 0, 0, 1, 1], [1, 0, 0, 1, 0, 1]]
    assert found._values().tolist() == [3, 6, 2, 2, 4, 4] and not found.is_coalesced()
    with pytest.raises(RuntimeError, match="Argument #3: Expected dim 0 size 2, got 3"):
        torch.sspaddmm(s, s, torch.ones(3, 2))


def test_a_single_value_is_that_of_a_single_place():
    s = torch.sparse_coo_tensor([[1]], torch.tensor(3.0), (2,))
    assert s.to_dense().tolist() == [0.0, 3.0]
    with pytest.raises(RuntimeError, match="must have same nnz"):
        torch.sparse_coo_tensor([[0, 1]], torch.tensor(3.0), (2,))
    with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dimensions"):
        torch.sparse_coo_tensor(torch.tensor(2), torch.ones(2), (2,))
