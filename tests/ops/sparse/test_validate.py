"""The checks of sparse tensors' parts, called by their names."""
import pytest

import flambeau as torch

INDICES = torch.tensor([[0, 1], [1, 0]])


def test_parts_that_fit():
    torch._validate_sparse_coo_tensor_args(INDICES, torch.ones(2), (2, 2))
    torch._validate_sparse_csr_tensor_args(torch.tensor([0, 1, 2]), torch.tensor([1, 0]),
                                           torch.ones(2), (2, 2))
    torch._validate_sparse_bsr_tensor_args(torch.tensor([0, 1]), torch.tensor([0]),
                                           torch.ones(1, 2, 2), (2, 2))


@pytest.mark.parametrize("check,parts,said", [
    ("coo", (INDICES, torch.ones(3), (2, 2)), "same nnz|number of"),
    ("coo", (INDICES, torch.ones(2), (1, 2)), "size"),
    ("csr", (torch.tensor([0, 2, 1]), torch.tensor([1, 0]), torch.ones(2), (2, 2)), "crow_indices"),
    ("csr", (torch.tensor([0, 1, 2]), torch.tensor([1, 7]), torch.ones(2), (2, 2)), "col_indices"),
    ("csc", (torch.tensor([1, 1, 2]), torch.tensor([1, 0]), torch.ones(2), (2, 2)), "ccol_indices"),
    ("bsr", (torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1, 2, 2), (3, 2)), "block|size")])
def test_parts_that_do_not(check, parts, said):
    with pytest.raises(RuntimeError, match=said):
        getattr(torch, f"_validate_sparse_{check}_tensor_args")(*parts)
