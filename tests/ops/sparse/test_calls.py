"""How calls with sparse arguments find their rule, and how results are written."""
import pytest

import flambeau as torch


def eye(n=3):
    return torch.eye(n).to_sparse()


def test_an_op_without_rule_names_itself():
    with pytest.raises(NotImplementedError, match="cholesky"):
        torch.linalg.cholesky(eye())


def test_a_wrong_call_is_that_first_of_all():
    with pytest.raises(TypeError, match=r"must be|invalid combination"):
        torch.mm(eye(), "a")


def test_writing_in_place_keeps_the_tensor():
    x = eye()
    version = x._version
    assert x.mul_(2) is x and x.to_dense().diagonal().tolist() == [2, 2, 2]
    assert x._version > version
    assert x.add_(eye()) is x and x.to_dense().diagonal().tolist() == [3, 3, 3]
    assert x.zero_()._nnz() == 0


def test_ops_of_each_element_want_each_place_once():
    twice = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,))
    with pytest.raises(RuntimeError, match="requires coalesced input"):
        twice.sin_()
    assert twice.sin().to_dense()[0].item() == pytest.approx(torch.tensor(3.0).sin().item())


def test_out():
    out = torch.sparse_coo_tensor((3, 3))
    assert torch.neg(eye(), out=out) is out and out.to_dense().trace() == -3
    dense = torch.empty(3, 2)
    assert torch.mm(eye(), torch.ones(3, 2), out=dense) is dense and dense.sum() == 6


def test_a_sparse_addend_of_a_dense_tensor():
    x = torch.ones(3, 3)
    assert x.add_(eye(), alpha=2) is x and x.diagonal().tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match=r"add\(sparse, dense\) is not supported"):
        eye() + torch.ones(3, 3)


def test_gradients_of_what_was_written():
    x = eye().requires_grad_()
    y = (x * 1).mul_(3)
    y.to_dense().sum().backward()
    assert x.grad.to_dense().diagonal().tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.mul_(2)
