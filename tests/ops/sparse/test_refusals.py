"""What sparse tensors refuse, in PyTorch's words, and what they take."""
import pytest

import flambeau as torch

COO = torch.sparse_coo_tensor(torch.tensor([[0, 1], [0, 2]]), torch.tensor([1.0, 2.0]), (4, 4))
WHOLE = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [0, 0, 2]]),
                                torch.tensor([1, 2, 3], dtype=torch.int8), (4, 4))
HYBRID = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.tensor([[1.0, 2], [3, 4]]), (4, 2))

REFUSED = {
    "mv: expected self.size(-1) == vec.size(-1)": lambda: COO.mv(torch.ones(3)),
    "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: 2Tensor Dim: 2":
        lambda: COO.mv(COO),
    "mat1 dtype Float does not match mat2 dtype Double": lambda: COO @ COO.double(),
    "dtype argument is not supported in frobenius norm": lambda: COO.norm(dtype=torch.double),
    "norm_sparse currently does not support 'dtype' argument":
        lambda: COO.norm(dtype=torch.double, p=0),
    "permute(): duplicate dims are not allowed.": lambda: COO.permute(1, 1),
    "start (1) + length (9) exceeds dimension size (4).": lambda: COO.narrow(0, 1, 9),
    "Dimension 10 out of range. Expecting 0 <= dim < 2.": lambda: COO.narrow_copy(10, 0, 1),
    "Invalid range to narrow. range(start, start+length) must be a subset of range(0, 4).":
        lambda: COO.narrow_copy(0, 1, 9),
    "memory format option is only supported by strided tensors":
        lambda: torch.zeros_like(COO, memory_format=torch.preserve_format),
    "unsupported memory format option ChannelsLast":
        lambda: COO.clone(memory_format=torch.channels_last),
    "Sparse floor division requires a scalar or zero-dim dense tensor divisor (got shape [4, 4] "
    "for divisor)": lambda: COO // COO,
    "add(sparse, dense) is not supported. Use add(dense, sparse) instead.":
        lambda: COO + torch.ones(4, 4),
    "add: expected 'self' and 'other' to have same size, but self has size [4, 5] while other has "
    "size [4, 4] (FYI: dense-sparse addition does not currently support broadcasting)":
        lambda: torch.ones(4, 5) + COO,
    "All tensors must have the same sparse_dim and dense_dim: 2, 0, but tensor at position 1 has "
    "1, 1.": lambda: torch.cat([COO[:, :2], HYBRID]),
    "only Tensors of floating point dtype can require gradients": lambda: WHOLE.requires_grad_(),
    "Offset Tensor must have dtype Long but got Int":
        lambda: torch.sparse.spdiags(torch.ones(1, 5), torch.tensor([0]).int(), (5, 5)),
}


@pytest.mark.parametrize("said", REFUSED)
def test_refused(said):
    with pytest.raises((RuntimeError, ValueError, TypeError)) as error:
        REFUSED[said]()
    assert str(error.value) == said


def test_elements_keep_their_type():
    assert WHOLE[0, 0].dtype is torch.int8 and int(WHOLE[0, 0]) == 3
    assert WHOLE[2].dtype is torch.int8


@pytest.mark.parametrize("factor", [torch.tensor(2).to_sparse(), torch.tensor(2.0).to_sparse(),
                                    torch.sparse_coo_tensor(torch.zeros(0, 2).long(),
                                                            torch.tensor([1, 1]), ())])
def test_a_sparse_number_scales(factor):
    for x in (COO, WHOLE):
        for product in (x * factor, factor * x):
            expected = x.to_dense() * factor.to_dense()
            torch.testing.assert_close(product.to_dense(), expected)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_dense_dimensions_can_be_added_and_joined(dim):
    torch.testing.assert_close(HYBRID.unsqueeze(dim).to_dense(), HYBRID.to_dense().unsqueeze(dim))
    if dim != 2:
        joined = torch.cat([HYBRID, 2 * HYBRID], dim)
        torch.testing.assert_close(joined.to_dense(), torch.cat(
            [HYBRID.to_dense(), 2 * HYBRID.to_dense()], dim))


def test_fewer_than_two_entries_are_in_order():
    assert torch.sparse_coo_tensor((2, 2)).is_coalesced()
    assert torch.sparse_coo_tensor([[0], [0]], [1], (2, 2)).is_coalesced()
    assert not torch.sparse_coo_tensor([[0], [0]], [1], (2, 2), is_coalesced=False).is_coalesced()
    assert not torch.sparse_coo_tensor([[0, 0], [0, 0]], [1, 2], (2, 2)).is_coalesced()


def test_nothing_can_be_added_whatever_its_sparse_dimensions():
    for x in (HYBRID, WHOLE):
        zeros = torch.sparse_coo_tensor(x.shape, dtype=x.dtype)
        for total in (x + zeros, zeros + x, x - zeros):
            assert total._nnz() == x._nnz()
            torch.testing.assert_close(total.to_dense(), x.to_dense())


def test_results_that_are_filled_can_require_gradients():
    assert torch.zeros(2, 3, out=torch.sparse_coo_tensor((2, 3)), requires_grad=True).requires_grad
    assert torch.zeros(2, 3, out=torch.empty(0), requires_grad=True).requires_grad


def test_entries_in_order_merge_in_order():
    a = torch.sparse_coo_tensor(torch.tensor([[0, 3, 4]]), torch.tensor([1.0, 2.0, 3.0]), (6,))
    b = torch.sparse_coo_tensor(torch.tensor([[0, 1, 3]]), torch.tensor([1.0, 5.0, 2.0]), (6,))
    for total in (a + b, b + a):
        assert total._indices().tolist() == [[0, 1, 3, 4]] and not total.is_coalesced()
    one = torch.sparse_coo_tensor([[0]], [1.0], (2,), is_coalesced=False)
    assert not one.clone().is_coalesced()
