"""Adam for sparse gradients."""
import pytest
from optimizer_tests import OptimizerTests

import flambeau as torch


class TestSparseAdam(OptimizerTests):
    name = "SparseAdam"
    sparse = True
    state = "step exp_avg exp_avg_sq"
    options = "lr betas eps maximize"
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"lr": 0}, ValueError, "Invalid learning rate: 0"),
        ({"eps": 0}, ValueError, "Invalid epsilon value: 0"),
        ({"betas": (1.0, 0.9)}, ValueError, "Invalid beta parameter at index 0: 1.0"),
    ]


def test_rows_without_gradient_stand_still():
    p = torch.ones(3, 2, requires_grad=True)
    optimizer = torch.optim.SparseAdam([p], lr=0.25)
    for rows in ([0], [0, 2]):
        p.grad = torch.sparse_coo_tensor([rows], torch.ones(len(rows), 2), (3, 2))
        optimizer.step()
    assert p[1].tolist() == [1.0, 1.0]
    assert p[0].tolist() == pytest.approx([0.5, 0.5], rel=1e-4)
    assert not optimizer.state[p]["exp_avg"][1].any()


def test_where_all_rows_have_gradients_it_is_adam():
    one, other = (torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2).requires_grad_()
                  for _ in range(2))
    sparse, dense = torch.optim.SparseAdam([one], lr=0.1), torch.optim.Adam([other], lr=0.1)
    for _ in range(3):
        other.grad = torch.cos(3 * other.detach())
        one.grad = other.grad.to_sparse(1)
        sparse.step()
        dense.step()
    torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_dense_gradients_and_sparse_parameters_are_refused():
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        torch.optim.SparseAdam([p]).step()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]"):
        torch.optim.SparseAdam([torch.eye(2).to_sparse().requires_grad_()])
