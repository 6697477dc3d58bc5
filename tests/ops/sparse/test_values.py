"""Values of sparse tensors and changes of form: gradients land at the places."""
import pytest

import flambeau as torch
from flambeau.autograd import gradcheck

PLACES = torch.tensor([[0, 1, 1], [1, 0, 2]])
DENSE = torch.tensor([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 4.0, 0.0]], dtype=torch.float64)
LAYOUTS = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]


def form(layout):
    blocks = (2, 2) if layout in LAYOUTS[3:] else None
    return {"layout": layout, "blocksize": blocks}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back(layout):
    x = DENSE.clone().requires_grad_()
    sparse = x.to_sparse(**form(layout))
    assert sparse.layout is layout and torch.equal(sparse.to_dense(), x)
    (sparse.to_dense() * torch.arange(8.0).reshape(2, 4)).sum().backward()
    wanted = torch.arange(8.0, dtype=torch.float64).reshape(2, 4)
    if layout in LAYOUTS[:3]:           # whole blocks are held, of others the entries alone
        wanted = wanted * (DENSE != 0)
    assert torch.equal(x.grad, wanted)


def test_gradients_of_values():
    def function(values):
        return torch.sparse_coo_tensor(PLACES, values, (2, 3)).to_dense().sin()
    assert gradcheck(function, torch.rand(3, dtype=torch.float64, requires_grad=True))


def test_values_have_history():
    x = torch.sparse_coo_tensor(PLACES, torch.ones(3), (2, 3)).coalesce().requires_grad_()
    (x.values() * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.is_sparse and x.grad.coalesce().values().tolist() == [1, 2, 3]


@pytest.mark.parametrize("masked, wanted", [(True, [[0, 1, 0], [1, 0, 1]]), (False, [[1] * 3] * 2)])
def test_gradients_of_absent_elements(masked, wanted):
    x = torch.sparse_coo_tensor(PLACES, torch.ones(3), (2, 3)).requires_grad_()
    x.to_dense(masked_grad=masked).sum().backward()
    assert x.grad.to_dense().tolist() == wanted


def test_masks():
    pattern = torch.sparse_coo_tensor(PLACES, torch.ones(3), (2, 3)).coalesce()
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    found = x.sparse_mask(pattern)
    assert found.values().tolist() == [1, 3, 5]
    found.to_dense().sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [1, 0, 1]]


def test_dense_tensors_are_themselves():
    assert DENSE.to_dense() is DENSE
    assert DENSE.to_dense(torch.float32).dtype is torch.float32
    with pytest.raises(RuntimeError, match="dtype argument is not supported by sparse_to_dense"):
        DENSE.to_sparse().to_dense(torch.float32)
