"""What a sparse tensor can be asked: its parts, and its size, changed in place."""
import pytest

import flambeau as torch

TWICE = torch.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3))
HYBRID = torch.sparse_coo_tensor([[1, 0]], [[1.0, 2.0], [3.0, 4.0]], (2, 2))
DENSE = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])


def test_counts():
    assert (TWICE.sparse_dim(), TWICE.dense_dim(), TWICE._nnz()) == (2, 0, 3)
    assert (HYBRID.sparse_dim(), HYBRID.dense_dim()) == (1, 1)
    assert (DENSE.to_sparse_csr().sparse_dim(), DENSE.to_sparse_csr()._nnz()) == (2, 3)
    assert (DENSE.sparse_dim(), DENSE.dense_dim()) == (0, 2)


def test_entries_of_a_place_are_added_up():
    assert not TWICE.is_coalesced()
    once = TWICE.coalesce()
    assert once.is_coalesced() and once.coalesce() is once
    assert once.indices().tolist() == [[0, 1], [0, 2]] and once.values().tolist() == [2, 4]
    assert TWICE._indices().tolist() == [[1, 0, 1], [2, 0, 2]]
    assert TWICE._values().tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["indices", "values"])
def test_parts_of_what_is_not_coalesced(name):
    with pytest.raises(RuntimeError, match=f"Cannot get {name} on an uncoalesced tensor, please"):
        getattr(TWICE, name)()


@pytest.mark.parametrize("layout, names", [
    (torch.sparse_csr, ("crow_indices", "col_indices")),
    (torch.sparse_csc, ("ccol_indices", "row_indices"))])
def test_compressed_parts(layout, names):
    x = DENSE.to_sparse(layout=layout)
    parts = [getattr(x, name)() for name in names]
    again = torch.sparse_compressed_tensor(*parts, x.values(), x.shape, layout=layout)
    assert torch.equal(again.to_dense(), DENSE)
    copy = getattr(torch, f"{names[0]}_copy")(x)
    assert torch.equal(copy, parts[0]) and copy.data_ptr() != parts[0].data_ptr()
    with pytest.raises(RuntimeError, match=f"{names[0]} expected sparse"):
        getattr(TWICE, names[0])()


def test_parts_of_dense_tensors():
    with pytest.raises(RuntimeError, match="coalesce expected sparse coordinate tensor layout but"):
        DENSE.coalesce()
    with pytest.raises(RuntimeError, match="values expected sparse tensor layout but got Strided"):
        DENSE.values()


def test_sizes_change_in_place():
    x = TWICE.clone()
    assert x.sparse_resize_((4, 5), 2, 0) is x
    assert x.shape == (4, 5) and x._nnz() == 3 and x.to_dense().sum() == 6
    assert x.sparse_resize_and_clear_((2, 2, 3), 1, 2) is x
    assert x.shape == (2, 2, 3) and x._nnz() == 0 and x.sparse_dim() == 1
    assert TWICE.clone().resize_as_sparse_(torch.zeros(7, 8).to_sparse()).shape == (7, 8)


@pytest.mark.parametrize("size, sparse, dense, message", [
    ((1, 3), 2, 0, "shrinking the size of sparse dimensions"),
    ((2, 3, 4), 3, 0, "changing the number of sparse dimensions"),
    ((2, 3, 4), 2, 1, "changing the number of dense dimensions"),
    ((2, 3), 2, 1, r"'len\(size\) == sparse_dim \+ dense_dim' is not satisfied|"
                   r"number of dimensions must be sparse_dim"),
])
def test_sizes_that_do_not_hold_the_entries(size, sparse, dense, message):
    with pytest.raises(RuntimeError, match=message):
        TWICE.clone().sparse_resize_(size, sparse, dense)


def test_rows_of_compressed_tensors():
    x = DENSE.to_sparse_csr()
    x.resize_(3, 4)
    assert x.to_dense().tolist() == [[0, 2, 0, 0], [3, 0, 4, 0], [0] * 4]
    with pytest.raises(RuntimeError, match="Resizing columns of sparse CSR tensors to a smaller"):
        x.resize_(3, 2)
