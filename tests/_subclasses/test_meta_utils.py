"""Tensors on `meta` in the form of others."""
import pytest

import flambeau as torch
from flambeau._subclasses import meta_utils


def test_kinds_of_sparse_tensors():
    dense = torch.eye(2)
    coo, csr = dense.to_sparse(), dense.to_sparse_csr()
    assert [meta_utils.is_sparse_coo(t) for t in (dense, coo, csr, 3)] == [
        False, True, False, False]
    assert [meta_utils.is_sparse_compressed(t) for t in (dense, coo, csr)] == [False, False, True]
    assert [meta_utils.is_sparse_any(t) for t in (dense, coo, csr)] == [False, True, True]
    assert meta_utils.is_sparse_compressed_layout(torch.sparse_bsc)
    assert not meta_utils.is_sparse_compressed_layout(torch.sparse_coo)


def test_gradients_without_a_warning(recwarn):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.sum().backward()
    assert meta_utils.safe_grad(y) is None and meta_utils.safe_grad(x).tolist() == [2, 2]
    assert not recwarn and meta_utils.safe_is_leaf(x) and not meta_utils.safe_is_leaf(y)


def test_equal_but_for_values():
    x = torch.ones(2, 3)
    meta_utils.assert_metadata_eq(meta_utils.assert_eq, x, torch.zeros(2, 3))
    for other in (torch.zeros(3, 2), torch.zeros(2, 3, dtype=torch.int64), x.t().contiguous().t(),
                  torch.zeros(2, 3, requires_grad=True)):
        with pytest.raises(AssertionError):
            meta_utils.assert_metadata_eq(meta_utils.assert_eq, x, other)
    with pytest.raises(AssertionError, match="1 != 2"):
        meta_utils.assert_eq(1, 2)


def test_one_for_each_tensor():
    convert = meta_utils.MetaConverter()
    x = torch.arange(6).reshape(2, 3).t()
    found = convert(x)
    assert (found.device.type, found.shape, found.dtype, found.stride()) == (
        "meta", x.shape, x.dtype, x.stride())
    assert convert(x) is found and convert.successful()
    y = torch.ones(2, requires_grad=True)
    assert convert(y).requires_grad and convert(y).is_leaf


def test_views_of_one_memory_stay_such():
    convert = meta_utils.MetaConverter()
    x = torch.zeros(4, 3)
    whole, part = convert(x), convert(x[1:])
    assert part.storage_offset() == 3 and part._base is whole
