"""Conversions between layouts, and the checks of their parts.

The rule: whatever conversion PyTorch allows gives parts that the validators accept, in the index
type of the source, with the same elements; what it does not allow is refused with a sentence that
names both layouts.
"""
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flambeau

COMPRESSED = (flambeau.sparse_csr, flambeau.sparse_csc, flambeau.sparse_bsr, flambeau.sparse_bsc)
LAYOUTS = (flambeau.strided, flambeau.sparse_coo, *COMPRESSED)
BLOCKED = COMPRESSED[2:]
matrices = hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 3)).map(
    lambda halves: (2 * halves[0], 2 * halves[1])), elements=st.sampled_from([0.0, 0.0, 1.0, -2.5]))


def made(array, layout, **more):
    return flambeau.tensor(array).to_sparse(
        layout=layout, blocksize=(2, 2) if layout in BLOCKED else None, **more)


def indices_of(x):
    if x.layout in (flambeau.sparse_csr, flambeau.sparse_bsr):
        return x.crow_indices(), x.col_indices()
    return x.ccol_indices(), x.row_indices()


def validate(x):
    if x.layout is flambeau.sparse_coo:
        flambeau._validate_sparse_coo_tensor_args(x._indices(), x._values(), x.shape,
                                                  x.is_coalesced())
    elif x.layout in COMPRESSED:
        flambeau._validate_sparse_compressed_tensor_args(*indices_of(x), x.values(), x.shape,
                                                         x.layout)


def with_narrow_indices(x):
    if x.layout not in COMPRESSED:
        return x
    outer, inner = indices_of(x)
    return flambeau.sparse_compressed_tensor(outer.int(), inner.int(), x.values(), x.shape,
                                             layout=x.layout)


@given(matrices, st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS), st.booleans())
@settings(max_examples=120, deadline=None)
def test_a_conversion_keeps_elements_and_index_type(array, first, second, narrow):
    source = made(array, first)
    if narrow:
        source = with_narrow_indices(source)
    if first in BLOCKED and second in COMPRESSED[:2]:
        with pytest.raises(RuntimeError, match="expected SparseCsr or SparseCsc layout but got"):
            source.to_sparse(layout=second)
        return
    result = source.to_sparse(layout=second, blocksize=(2, 2) if second in BLOCKED else None)
    validate(result)
    assert result.layout is second
    np.testing.assert_array_equal(result.to_dense().numpy(), array)
    if second in COMPRESSED:
        expected = indices_of(source)[0].dtype if first in COMPRESSED else flambeau.int64
        assert {part.dtype for part in indices_of(result)} == {expected}


def test_entries_that_are_zero_stay():
    x = flambeau.sparse_csc_tensor([0, 1, 3], [1, 0, 1], [0.0, 2.0, 3.0], (2, 2))
    assert x.to_sparse()._indices().tolist() == [[1, 0, 1], [0, 1, 1]]
    assert not x.to_sparse().is_coalesced()
    assert x.to_sparse_csr()._nnz() == 3
    blocks = flambeau.eye(4).to_sparse_bsr((2, 2))
    assert blocks.to_sparse()._nnz() == 8 and not blocks.to_sparse().is_coalesced()


@pytest.mark.parametrize("first, second", list(itertools.product(LAYOUTS, LAYOUTS)))
def test_a_blocksize_is_for_blocks(first, second):
    x = made(np.eye(4), first)
    names = {flambeau.strided: "Strided", flambeau.sparse_coo: "Sparse",
             flambeau.sparse_csr: "SparseCsr", flambeau.sparse_csc: "SparseCsc",
             flambeau.sparse_bsr: "SparseBsr", flambeau.sparse_bsc: "SparseBsc"}
    change = f"conversion from {names[first]} to {names[second]}"
    if second in BLOCKED:
        with pytest.raises(RuntimeError, match=f"{change} without blocksize argument given"):
            x.to_sparse(layout=second)
        with pytest.raises(RuntimeError, match="blocksize needs to be positive, but got"):
            x.to_sparse(layout=second, blocksize=(0, 2))
    else:
        with pytest.raises(RuntimeError, match=f"{change} with blocksize argument given"):
            x.to_sparse(layout=second, blocksize=(2, 2))
    with pytest.raises(RuntimeError, match="blocksize needs to be a tuple of size 2, but got 1"):
        x.to_sparse(layout=second, blocksize=(2,))
    if first is not flambeau.strided:
        with pytest.raises(RuntimeError, match="with dense_dim argument given is not supported"):
            x.to_sparse(layout=second, blocksize=(2, 2) if second in BLOCKED else None, dense_dim=0)


def test_what_no_layout_can_hold_is_refused():
    cube = flambeau.ones(2, 2, 2).to_sparse()
    with pytest.raises(RuntimeError, match=r"input tensors with sparse_dim\(\)!=2"):
        cube.to_sparse_csr()
    with pytest.raises(RuntimeError, match=r"sparse_dim argument !=self.sparse_dim\(\)"):
        cube.to_sparse(2)
    with pytest.raises(RuntimeError, match="for batched inputs is not supported"):
        flambeau.ones(2, 2, 2).to_sparse_csr().to_sparse_bsr((1, 1))


PARTS = {"outer": flambeau.tensor([0, 1, 2]), "inner": flambeau.tensor([0, 1]),
         "values": flambeau.tensor([1.0, 2.0]), "size": (2, 2)}


@pytest.mark.parametrize("changed, message", [
    ({"size": (3, 2)}, r"crow_indices.shape\[-1\] must be equal to the number of rows \+ 1"),
    ({"size": (2, 1)}, "`0 <= col_indices < ncols` is not satisfied."),
    ({"size": (2,)}, "tensor dimensionality must be sum of batch, base, and dense"),
    ({"inner": PARTS["inner"].int()}, "must have the same dtype, bot got Long and Int"),
    ({"outer": flambeau.tensor([1, 1, 2])}, r"`crow_indices\[..., 0\] == 0` is not satisfied"),
    ({"inner": flambeau.tensor([0, 9, 1])[::2]}, "col_indices to be a contiguous tensor per batch"),
    ({"values": PARTS["values"].to_sparse()}, "values to be a strided tensor but got Sparse"),
    ({"layout": flambeau.sparse_coo}, "expected sparse compressed tensor layout but got Sparse"),
])
def test_the_validator_names_what_is_wrong(changed, message):
    parts = {"layout": flambeau.sparse_csr, **PARTS}
    flambeau._validate_sparse_compressed_tensor_args(*parts_in_order(parts))
    with pytest.raises(RuntimeError, match=message):
        flambeau._validate_sparse_compressed_tensor_args(*parts_in_order({**parts, **changed}))


def parts_in_order(parts):
    return [parts[name] for name in ("outer", "inner", "values", "size", "layout")]


def test_validators_of_indices_alone():
    check = flambeau._validate_compressed_sparse_indices
    outer, inner = PARTS["outer"], PARTS["inner"]
    assert check(True, outer, inner, 2, 2, 2) is None
    with pytest.raises(RuntimeError, match=r"crow_indices.shape.* = 3 is not equal to nrows"):
        check(True, outer, inner, 3, 2, 2)
    with pytest.raises(RuntimeError, match=r"row_indices.shape.* = 2 is not equal to nnz = 3"):
        check(False, outer, inner, 2, 2, 3)
