"""A piece of a sharded tensor that this process has."""
import copy
import pickle

import pytest
from shard_cases import about

import flambeau as torch
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor import Shard


def test_from_tensors():
    made = Shard.from_tensor_and_offsets(torch.arange(4).view(2, 2), [2, 0], 1)
    assert made.metadata == about((2, 0), (2, 2), 1)
    again = pickle.loads(pickle.dumps(made))
    assert again.metadata == made.metadata and torch.equal(again.tensor, made.tensor)
    assert copy.copy(made).tensor is made.tensor
    assert copy.deepcopy(made).tensor.data_ptr() != made.tensor.data_ptr()
    assert repr(Shard(torch.ones(1), ShardMetadata([0], [1]))) == (
        "Shard(tensor=tensor([1.]), metadata=ShardMetadata(shard_offsets=[0], shard_sizes=[1], "
        "placement=None))")


@pytest.mark.parametrize(("metadata", "message"), [
    (ShardMetadata([0], [3]), r"Shard tensor size does not match with metadata.shard_lengths! "
                              r"Found shard tensor size: \[2\], metadata.shard_lengths: \[3\]"),
    (ShardMetadata([0], [2], "rank:0/meta"),
     "device does not match with local Shard's placement! Found local shard tensor device: cpu, "
     "local shard metadata placement device: meta")])
def test_what_does_not_fit(metadata, message):
    with pytest.raises(ValueError, match=message):
        Shard(torch.ones(2), metadata)
