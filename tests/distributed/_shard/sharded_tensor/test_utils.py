"""Agreement of all processes on what a sharded tensor is."""
import pytest
from shard_cases import about, deprecated, piece

import flambeau as torch
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor import Shard, utils
from flambeau.distributed._shard.sharded_tensor.metadata import (
    ShardedTensorMetadata,
    TensorProperties,
)
from flambeau.distributed.remote_device import _remote_device

pytestmark = deprecated


@pytest.mark.parametrize(("given", "size"), [
    ((1, 2), (1, 2)), (([1, 2],), (1, 2)), ((torch.Size([3]),), (3,)), ((), ()), (((),), ())])
def test_sizes(given, size):
    found = utils._flatten_tensor_size(given)
    assert type(found) is torch.Size and found == torch.Size(size)


@pytest.mark.parametrize("given", [(1.0,), ((1,), (2,)), (2, "a")])
def test_no_sizes(given):
    with pytest.raises(TypeError, match="size has to be a sequence of ints, found"):
        utils._flatten_tensor_size(given)


def test_places(alone):
    parse = utils._parse_and_validate_remote_device
    assert parse(None, _remote_device("rank:0/cpu")) == (0, torch.device("cpu"))
    with pytest.raises(ValueError, match="remote device is None"):
        parse(None, None)
    with pytest.raises(ValueError, match="Global rank 3 does not exist in input process group"):
        parse(None, _remote_device("rank:3/cpu"))
    with pytest.raises(RuntimeError, match="RPC framework needs to be initialized for using "
                                           "worker names"):
        parse(None, _remote_device("w/cpu"))


@pytest.mark.parametrize(("rank", "out", "message"), [
    (1, None, "must be specified on destination rank 1"),
    (1, torch.zeros(2), r"have size \(2,\),but should be \(3,\)"),
    (0, torch.ones(1), "must NOT be specified on non-destination ranks")])
def test_outputs_of_gathering(rank, out, message):
    utils._validate_output_tensor_for_gather(1, 1, torch.Size([3]), torch.zeros(3))
    utils._validate_output_tensor_for_gather(0, 1, torch.Size([3]), None)
    with pytest.raises(ValueError, match=message):
        utils._validate_output_tensor_for_gather(rank, 1, torch.Size([3]), out)


@pytest.mark.parametrize(("shards", "message"), [
    ([piece(torch.ones(2), 0, rank=1)], "Global rank 1 does not exist"),
    ([Shard(torch.ones(2), ShardMetadata([0], [2]))], "remote device is None"),
    ([piece(torch.ones(2, 3).t(), 0, 0)], "Only torch.contiguous_format memory_format"),
    ([piece(torch.ones(2), 0), piece(torch.ones(2, dtype=torch.int8), 2)],
     "tensor dtype property need to be the same on rank:0! Found one local shard tensor "
     "dtype=torch"),
    ([piece(torch.ones(2), 0), piece(torch.ones(2, requires_grad=True), 2)],
     "tensor requires_grad property need to be the same")])
def test_local_pieces_that_are_refused(alone, shards, message):
    with pytest.raises(ValueError, match=message):
        utils.build_metadata_from_local_shards(shards, torch.Size([4]), 0, None)


def test_local_pieces(alone):
    shards = [piece(torch.ones(2), 0), piece(torch.ones(2), 2)]
    made = utils.build_metadata_from_local_shards(shards, torch.Size([4]), 0, None)
    assert made == ShardedTensorMetadata([s.metadata for s in shards], torch.Size([4]),
                                         TensorProperties())


def said(rank, size=(4,), **properties):
    return ShardedTensorMetadata([about((2 * rank,), (2,), rank)], torch.Size(size),
                                 TensorProperties(**properties))


def test_what_all_say():
    made = utils.build_global_metadata([None, said(0), said(1)])
    assert made == ShardedTensorMetadata([about((0,), (2,)), about((2,), (2,), 1)],
                                         torch.Size([4]), TensorProperties())
    with pytest.raises(ValueError, match="ShardedTensor have no local shards on all ranks!"):
        utils.build_global_metadata([None, None])
    with pytest.raises(ValueError, match="overlap"):
        utils.build_global_metadata([said(0), said(0)])


@pytest.mark.parametrize(("second", "name"), [
    ({"size": (5,)}, "global_size"), ({"dtype": torch.int8}, "dtype"),
    ({"requires_grad": True}, "requires_grad"), ({"pin_memory": True}, "pin_memory")])
def test_what_all_say_has_to_agree(second, name):
    with pytest.raises(ValueError, match=f"ShardedTensor {name} property does not match from "
                                         rf"different ranks! Found {name}=.* on rank:1, and "
                                         f"{name}=.* on rank:2"):
        utils.build_global_metadata([None, said(0), said(1, **second)])


def test_pieces_that_follow_each_other():
    made = ShardedTensorMetadata([about((9, 1), (3, 2), 0), about((9, 0), (1, 2), 1)],
                                 torch.Size([0, 2]))
    utils.recalc_global_sharded_tensor_metadata(made, 0)
    assert [p.shard_offsets for p in made.shards_metadata] == [[0, 0], [3, 0]]
    assert made.size == torch.Size([4, 2])
