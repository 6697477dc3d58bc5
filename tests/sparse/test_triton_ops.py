"""What libraries with Triton kernels of their own use of torch.sparse."""
import pytest

import flambeau as torch
from flambeau.sparse import _triton_ops as ops


@pytest.fixture
def blocks():
    dense = torch.randn(4, 6) * torch.eye(2, 3).repeat_interleave(2, 0).repeat_interleave(2, 1)
    return dense, dense.to_sparse_bsr((2, 2))


def test_products_are_those_of_dense_matrices(blocks):
    dense, bsr = blocks
    other, added, left, right = (torch.randn(*s) for s in ((6, 3), (4, 3), (4,), (3,)))
    expected = 2 * added + left[:, None] * (3 * (dense @ other)) * right
    out = torch.empty(4, 3)
    found = ops.bsr_dense_addmm(added, bsr, other, beta=2, alpha=3, left_alpha=left,
                                right_alpha=right, out=out)
    torch.testing.assert_close(found, expected)
    assert found is out
    torch.testing.assert_close(ops.bsr_scatter_mm(bsr, other), dense @ other)


def test_arguments_are_prepared(blocks):
    dense, bsr = blocks
    tiles = ops.tile_to_blocksize(dense, (2, 2))
    assert tiles.shape == (2, 3, 2, 2)
    torch.testing.assert_close(tiles[1, 1], dense[2:, 2:4])
    wide = ops.broadcast_batch_dims_bsr("f", bsr, torch.ones(5, 6, 3))
    torch.testing.assert_close(wide.to_dense(), dense.expand(5, 4, 6))
    *indices, values, other = ops.prepare_inputs(bsr, torch.ones(5, 6, 3))
    assert [t.shape[0] for t in (*indices, values, other)] == [5] * 4
    assert ops.as1Dbatch(torch.ones(2, 3, 4, 5)).shape == (6, 4, 5)
    assert min(ops.make_triton_contiguous(torch.ones(4, 6)[::2, ::2]).stride()) == 1


@pytest.mark.parametrize("call, message", [
    (lambda: ops.check_blocksize("f", (3, 4)), "at least 16 and a power of 2"),
    (lambda: ops.check_dtype("f", torch.ones(2), torch.half), "got dtype == torch.float32"),
    (lambda: ops.broadcast_batch_dims("f", torch.ones(3, 1, 1), torch.ones(2, 1, 1)),
     "batch dimensions are not broadcastable"),
    (lambda: ops.bsr_scatter_mm(torch.ones(2, 2), torch.ones(2, 2)), "only BSR sparse format"),
])
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
