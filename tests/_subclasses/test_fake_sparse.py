"""Sparse tensors without entries."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._subclasses import FakeTensor, FakeTensorMode

LAYOUTS = {"sparse_coo": lambda x: x.to_sparse(), "sparse_csr": lambda x: x.to_sparse_csr(),
           "sparse_csc": lambda x: x.to_sparse_csc(),
           "sparse_bsr": lambda x: x.to_sparse_bsr((2, 2)),
           "sparse_bsc": lambda x: x.to_sparse_bsc((2, 2))}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_tensors_keep_layout_and_shapes_without_entries(layout):
    mode, real = FakeTensorMode(), LAYOUTS[layout](torch.eye(4))
    fake = mode.from_tensor(real)
    assert type(fake).__name__ == "FakeTensor" and isinstance(fake, FakeTensor)
    assert mode.from_tensor(real) is fake
    assert fake.layout is getattr(torch, layout) and fake.device.type == "cpu"
    assert (fake.sparse_dim(), fake.dense_dim(), fake._nnz()) == (2, 0, 0)
    for again in (fake.detach(), fake.clone(), fake + fake, 2 * fake):
        assert isinstance(again, FakeTensor) and again.layout is fake.layout
    assert fake.to_dense().layout is torch.strided and fake.to_dense().shape == (4, 4)
    assert (fake @ mode.from_tensor(torch.ones(4, 3))).shape == (4, 3)
    assert isinstance(fake.values(), FakeTensor) and fake.values().shape[0] == 0
    assert repr(fake).startswith("FakeTensor(") and "meta" not in repr(fake)
    needs = mode.from_tensor(real.clone().requires_grad_())
    assert needs.requires_grad and needs.is_leaf


def test_what_sparse_tensors_of_a_layout_refuse():
    fake = FakeTensorMode().from_tensor(torch.eye(2).to_sparse_csc())
    with pytest.raises(RuntimeError, match="Sparse CSC tensors do not have strides"):
        fake.stride()
    with pytest.raises(RuntimeError, match="Sparse CSC tensors do not have is_contiguous"):
        fake.is_contiguous()
