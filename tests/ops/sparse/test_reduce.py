"""Sums of sparse tensors over dimensions, and softmax over their entries."""
import pytest

import flambeau as torch


def drawn(*shape):
    torch.manual_seed(0)
    return torch.randn(*shape, dtype=torch.float64) * (torch.rand(*shape) < 0.5)


@pytest.mark.parametrize("dim", [None, 0, 1, (0, 2), -1])
def test_sums(dim):
    x = drawn(3, 4, 2)
    s = x.to_sparse()
    found = torch.sparse.sum(s) if dim is None else torch.sparse.sum(s, dim)
    found = found.to_dense() if found.is_sparse else found
    assert torch.allclose(found, x.sum() if dim is None else x.sum(dim))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_is_over_what_is_there(name):
    x = drawn(4, 5)
    hidden = x.masked_fill(x == 0, -torch.inf)
    found = getattr(torch.sparse, name)(x.to_sparse(), 1).to_dense()
    wanted = getattr(torch, name)(hidden, 1)
    there = x != 0
    assert torch.allclose(found[there], wanted[there])


def test_the_gradient_of_a_sum_is_one_at_each_entry():
    s = drawn(3, 4).to_sparse().requires_grad_()
    torch.sparse.sum(s).backward()
    assert s.grad.layout is torch.sparse_coo and (s.grad.coalesce().values() == 1).all()
    assert s.grad._nnz() == s._nnz()
