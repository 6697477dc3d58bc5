"""Moving entries about: the same as for dense tensors."""
import pytest

import flambeau as torch

torch.manual_seed(0)
DENSE = torch.randn(3, 4, 2) * (torch.rand(3, 4, 2) < 0.5)
CALLS = [lambda x: x.transpose(0, 1), lambda x: x.permute(2, 0, 1), lambda x: x.unsqueeze(1),
         lambda x: x.select(0, 1), lambda x: x.narrow_copy(1, 1, 2),
         lambda x: x.index_select(1, torch.tensor([2, 0])), lambda x: torch.cat([x, x], 1),
         lambda x: torch.stack([x, x]), lambda x: x[1], lambda x: x[0, 2]]


@pytest.mark.parametrize("call", CALLS)
def test_as_dense(call):
    found = call(DENSE.to_sparse())
    assert torch.equal(found.to_dense() if found.is_sparse else found, call(DENSE))


@pytest.mark.parametrize("call", CALLS[:8])
def test_gradients_come_back(call):
    s = DENSE.to_sparse().requires_grad_()
    found = call(s)
    (found.to_dense() if found.is_sparse else found).sum().backward()
    x = DENSE.clone().requires_grad_()
    call(x).sum().backward()
    assert torch.equal(s.grad.to_dense() * (DENSE != 0), x.grad * (DENSE != 0))
