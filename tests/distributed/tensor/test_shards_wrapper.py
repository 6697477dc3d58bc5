"""Several pieces of one tensor in one process."""
import pytest

import flambeau as torch
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed._checkpointable import _Checkpointable
from flambeau.distributed.checkpoint.metadata import MetadataIndex
from flambeau.distributed.tensor._shards_wrapper import LocalShardsWrapper


@pytest.fixture
def both():
    return LocalShardsWrapper([torch.arange(4.0).view(2, 2), torch.ones(2, 3)], [(0, 0), (0, 2)])


def test_what_it_is_made_of(both):
    assert both.shape == (2, 5) and both.dtype is torch.float32 and not both.is_meta
    assert both.local_sizes() == [(2, 2), (2, 3)] and both.local_offsets() == [(0, 0), (0, 2)]
    assert both._get_tensor_size_bytes() == 40 and not both.is_empty_shard()
    assert both.storage_metadata().size == (2, 5) and not both.is_pinned()
    assert both.requires_grad_() is both and both.local_shards()[1].requires_grad
    assert str(both).startswith("LocalShardsWrapper:[tensor([[0., 1.],")
    empty = LocalShardsWrapper([], [])
    assert empty.is_empty_shard() and empty.shape == (0, 0) and empty.local_shards() == []
    lines = LocalShardsWrapper([torch.ones(2), torch.ones(1)], [(0,), (2,)])
    assert lines.shape == (3,)


def test_ops_of_each_piece(both):
    assert both.to(torch.float64).local_shards()[1].dtype is torch.float64
    copy = both.clone()
    assert torch.equal(copy, both) and copy.local_shards()[0] is not both.local_shards()[0]
    assert both.detach().local_offsets() == both.local_offsets()
    assert [t.shape for t in both.new_empty(2, 5).local_shards()] == [(2, 2), (2, 3)]
    assert both.view(both.shape).shape == (2, 5)
    assert LocalShardsWrapper([torch.ones(2, 3)], [(0, 0)]).view(-1).shape == (6,)
    with pytest.raises(AssertionError, match="cannot have size"):
        both.view(5, 2)
    with pytest.raises(NotImplementedError, match=r"aten.add.Tensor is not supported for"):
        both + 1


def test_checkpoints(both, tmp_path):
    assert isinstance(both, _Checkpointable) and not isinstance(torch.ones(1), _Checkpointable)
    assert both.__get_tensor_shard__(MetadataIndex("w", torch.Size([0, 2]))).shape == (2, 3)
    with pytest.raises(ValueError, match=r"Could not find shard at 'torch.Size\(\[0, 9\]\)'"):
        both.__get_tensor_shard__(MetadataIndex("w", torch.Size([0, 9])))
    dcp.save({"w": both}, checkpoint_id=tmp_path)
    whole = {"w": torch.zeros(2, 5)}
    dcp.load(whole, checkpoint_id=tmp_path)
    assert whole["w"].tolist() == [[0.0, 1.0, 1.0, 1.0, 1.0], [2.0, 3.0, 1.0, 1.0, 1.0]]
    found = LocalShardsWrapper([torch.zeros(2, 4), torch.zeros(2, 1)], [(0, 0), (0, 4)])
    dcp.load({"w": found}, checkpoint_id=tmp_path)
    assert found.local_shards()[0].tolist() == [[0.0, 1.0, 1.0, 1.0], [2.0, 3.0, 1.0, 1.0]]
