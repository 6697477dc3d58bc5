"""Sparse tensors on device meta: forms without values."""
import pytest

import flambeau as torch

COO = torch.sparse_coo_tensor(torch.tensor([[0, 1], [0, 2]]), torch.tensor([1.0, 2.0]), (4, 4))
ALL = {"coo": COO, "csr": COO.to_sparse_csr(), "csc": COO.to_sparse_csc(),
       "bsr": COO.to_sparse_bsr((2, 2)), "bsc": COO.to_sparse_bsc((2, 2))}


@pytest.mark.parametrize("form", ALL)
def test_ops_keep_form_and_device(form):
    x = ALL[form]
    made = [x.to("meta"), torch.zeros_like(x, device="meta"), torch.empty_like(x.to("meta")),
            x.to("meta") + x.to("meta"), x.to("meta").clone(), x.to("meta").detach()]
    for m in made:
        assert (m.is_meta, m.layout, m.shape, m.dtype, m._nnz()) == (
            True, x.layout, x.shape, x.dtype, 0)
        assert m.values().is_meta and m.values().dtype == x.dtype
    assert torch.sum(made[0]).is_meta and torch.sum(made[0]).layout is torch.strided
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        made[0].to("cpu")


def test_made_there():
    for m in (torch.empty(4, 4, layout=torch.sparse_coo, device="meta"),
              torch.sparse_coo_tensor(size=(4, 4), device="meta"),
              torch.sparse_coo_tensor(torch.empty(2, 0, device="meta", dtype=torch.int64),
                                      torch.empty(0, device="meta"), (4, 4))):
        assert m.is_meta and m._indices().is_meta and m.is_coalesced()
    assert repr(m) == ("tensor(indices=tensor(..., size=(2, 0)),\n"
                       "       values=tensor(..., size=(0,)),\n"
                       "       device='meta', size=(4, 4), layout=torch.sparse_coo)")
