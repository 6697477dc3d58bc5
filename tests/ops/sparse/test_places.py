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


HYBRID = torch.sparse_coo_tensor([[0, 1, 1], [0, 1, 2]], torch.arange(60.).reshape(3, 4, 5),
                                 (2, 3, 4, 5)).coalesce()


@pytest.mark.parametrize("dims", [(0, 1, 3, 2), (1, 0, 2, 3), (-3, -4, -1, -2)])
def test_dense_dimensions_move_among_themselves(dims):
    found = HYBRID.permute(dims)
    assert torch.equal(found.to_dense(), HYBRID.to_dense().permute(dims))
    assert found.is_coalesced() == (dims[0] == 0)
    with pytest.raises(RuntimeError, match="between sparse and dense dimensions are not allowed"):
        HYBRID.permute(0, 2, 1, 3)


@pytest.mark.parametrize("name", ["t_", "transpose_", "swapaxes_", "swapdims_"])
def test_a_sparse_tensor_becomes_its_transpose(name):
    s = torch.tensor([[0., 1., 2.], [3., 0., 0.]]).to_sparse()
    dense, version = s.to_dense(), s._version
    args = () if name == "t_" else (0, 1)
    assert getattr(s, name)(*args) is s and s._version == version + 1
    assert torch.equal(s.to_dense(), dense.t()) and not s.is_coalesced()


def test_entries_stay_when_the_size_grows():
    s = torch.tensor([[0., 1.], [2., 0.]]).to_sparse()
    s.resize_as_(torch.sparse_coo_tensor((3, 3)))
    assert s.shape == (3, 3) and torch.equal(s.to_dense()[:2, :2], torch.tensor([[0., 1], [2, 0]]))
    with pytest.raises(RuntimeError, match=r"shrinking the size of sparse dimensions \(from"):
        s.resize_as_(torch.sparse_coo_tensor((1, 3)))
    with pytest.raises(RuntimeError, match=r"number of sparse dimensions \(from 2 to 3\)"):
        s.resize_as_(torch.sparse_coo_tensor((3, 3, 3)))
    with pytest.raises(NotImplementedError, match="aten::resize_"):
        s.resize_(4, 4)


def test_compressed_tensors_take_other_sizes():
    c = torch.tensor([[0., 1.], [2., 0.]]).to_sparse_csr()
    assert c.clone().resize_(3, 3).crow_indices().tolist() == [0, 1, 2, 2]
    assert c.clone().resize_(1, 3).crow_indices().tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="columns of sparse CSR tensors to a smaller value"):
        c.resize_(2, 1)


def test_what_is_joined_or_unsqueezed_does_not_claim_to_be_coalesced():
    x = torch.eye(2).to_sparse()
    for found in (torch.cat([x, x]), torch.stack([x, x]), x.unsqueeze(0)):
        assert not found.is_coalesced()
    assert torch.cat([x, x]).to_dense().equal(torch.eye(2).repeat(2, 1))


def test_masks_are_no_places():
    for index in (torch.eye(3) > 0, torch.tensor([True, False, True]), torch.eye(3).long()):
        with pytest.raises(NotImplementedError, match=r"Could not run 'aten::index\.Tensor'"):
            torch.eye(3).to_sparse()[index]
