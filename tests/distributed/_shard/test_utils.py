"""Pieces of tensors."""
import pytest

import flambeau as torch
from flambeau.distributed._shard._utils import narrow_tensor, narrow_tensor_by_index
from flambeau.distributed._shard.metadata import ShardMetadata


@pytest.mark.parametrize(("shape", "offsets", "sizes"), [
    ((2, 3), (0, 1), (2, 2)), ((6,), (2,), (4,)), ((4, 4), (3, 0), (1, 4)), ((3,), (0,), (0,)),
    ((), (), ())])
def test_a_piece_is_a_view(shape, offsets, sizes):
    whole = torch.zeros(shape)
    piece = narrow_tensor_by_index(whole, offsets, sizes)
    assert piece.shape == torch.Size(sizes)
    piece += 1
    mark = torch.zeros(shape)
    mark[tuple(slice(o, o + n) for o, n in zip(offsets, sizes))] = 1
    assert torch.equal(whole, mark)
    assert narrow_tensor(whole, ShardMetadata(list(offsets), list(sizes))).data_ptr() \
        == piece.data_ptr()


def test_a_dimension_that_is_not_cut_ignores_its_offset():
    assert narrow_tensor_by_index(torch.arange(3), [2], [3]).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        narrow_tensor_by_index(torch.arange(6), [5], [4])
