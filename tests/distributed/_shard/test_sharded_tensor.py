"""Tensors whose pieces are at two processes."""
from __future__ import annotations

import copy
import io
import pickle

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed._shard import load_with_process_group, shard_module, shard_parameter
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_optim import (
    ShardedOptimizer,
    named_params_with_sharded_tensor,
)
from flambeau.distributed._shard.sharding_plan import ShardingPlan
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec, EnumerableShardingSpec
from flambeau.distributed._shard.sharding_spec.api import (
    _infer_sharding_spec_from_shards_metadata,
)
from flambeau.distributed.remote_device import _remote_device


def rows():
    return ChunkShardingSpec(0, ["rank:0/cpu", "rank:1/cpu"])


def making(rank):
    ones = st.ones(rows(), 5, 2)
    assert ones.size() == (5, 2) and ones.local_tensor().shape == (3 - rank, 2)
    assert ones.metadata().shards_metadata[rank].placement.rank() == rank
    whole = torch.zeros(5, 2) if rank == 0 else None
    ones.gather(0, whole)
    assert rank or whole.sum() == 10
    for make in (st.zeros, st.rand, st.randn, st.empty):
        assert make(rows(), 4, dtype=torch.float64).local_tensor().dtype is torch.float64
    assert st.full(rows(), (4,), 3.0).local_tensor().tolist() == [3.0, 3.0]
    piece = st.Shard.from_tensor_and_offsets(torch.full((2, 3), float(rank)), [2 * rank, 0], rank)
    made = st.init_from_local_shards([piece], 4, 3)
    assert made.sharding_spec() == rows()
    with pytest.raises(ValueError, match="Total volume of shards: 12 does not match"):
        st.init_from_local_shards([piece], 5, 3)
    with pytest.raises(ValueError, match="overlap"):
        st.init_from_local_shards(
            [st.Shard.from_tensor_and_offsets(torch.ones(2, 3), [0, 0], rank)], 4, 3)
    with pytest.raises(ValueError, match="dtype property does not match from different ranks"):
        kind = torch.float32 if rank else torch.float64
        st.init_from_local_shards([st.Shard.from_tensor_and_offsets(
            torch.ones(2, 3, dtype=kind), [2 * rank, 0], rank)], 4, 3)
    local = st.ShardedTensor._init_from_local_tensor(torch.ones(2, 2), rows(), 4, 2)
    assert local.local_shards()[0].metadata.shard_offsets == [2 * rank, 0]


def ops(rank):
    a = st.ones(rows(), 5, 2)
    assert torch.equal(a, a.clone()) and not torch.allclose(a, st.zeros(rows(), 5, 2))
    assert copy.deepcopy(a).local_tensor() is not a.local_tensor()
    assert nn.init.constant_(a, 3.0).local_tensor().sum() == 3.0 * (6 - 2 * rank)
    nn.init.kaiming_uniform_(a)
    a.copy_(st.zeros(rows(), 5, 2))
    assert not a.local_tensor().any() and torch.ones_like(a).local_tensor().all()
    assert a.to(torch.float16).dtype is torch.float16 and a.cpu() is a
    assert a.requires_grad_().requires_grad and not a.detach().requires_grad
    with pytest.raises(RuntimeError, match=r"torch function 'add'.* not supported for"):
        a + 1
    with load_with_process_group(dist.group.WORLD):
        again = pickle.loads(pickle.dumps(st.ones(rows(), 4)))
    assert again.local_tensor().tolist() == [1.0, 1.0]
    stream = io.BytesIO()
    torch.save({"a": st.ones(rows(), 4)}, stream)


def resharding(rank):
    x = st.zeros(rows(), 4, 2)
    x.local_tensor().fill_(rank)
    x.reshard(ChunkShardingSpec(1, ["rank:0/cpu", "rank:1/cpu"]))
    assert x.local_tensor().flatten().tolist() == [0.0, 0.0, 1.0, 1.0]
    x.reshard(ChunkShardingSpec(1, ["rank:1/cpu", "rank:0/cpu"]))
    assert x.local_shards()[0].metadata.shard_offsets == [0, 1 - rank]


def modules(rank):
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 1))
    first = model[0].weight.detach().clone()
    dist.broadcast(first, 0)
    shard_parameter(model[0], "weight", rows())
    assert torch.equal(model[0].weight.local_tensor(), first[2 * rank:2 * rank + 2])
    assert isinstance(model.state_dict()["0.weight"], st.ShardedTensor)
    names = dict(named_params_with_sharded_tensor(model))
    assert "0.weight" in names
    optimizer = ShardedOptimizer(names, torch.optim.SGD, lr=0.5)
    local = model[0].weight.local_tensor()
    local.grad = torch.ones_like(local)
    optimizer.step()
    torch.testing.assert_close(local.detach(), first[2 * rank:2 * rank + 2] - 0.5)
    shard_module(model, ShardingPlan({"1.weight": ChunkShardingSpec(1, ["rank:0/cpu",
                                                                        "rank:1/cpu"])}))
    assert model[1].weight.local_tensor().shape == (1, 2)


def everything(rank):
    making(rank)
    ops(rank)
    resharding(rank)
    modules(rank)


def test_two_processes(processes):
    processes(everything)


@pytest.mark.parametrize(("made", "message"), [
    (lambda: ShardMetadata([0, 0], [1]), "same number of elements, found 2 and"),
    (lambda: ShardMetadata([-1], [1]), "shard_offsets should be >=0"),
    (lambda: ShardMetadata([0], [-1]), "shard_sizes should be >= 0"),
    (lambda: ChunkShardingSpec(0.5, ["rank:0/cpu"]), "Sharding dim needs to be an integer"),
    (lambda: EnumerableShardingSpec([]), "Empty shard list provided"),
    (lambda: EnumerableShardingSpec([ShardMetadata([0], [2]), ShardMetadata([1], [2])]),
     "overlap"),
    (lambda: EnumerableShardingSpec([ShardMetadata([0], [2]), ShardMetadata([1, 0], [2, 1])]),
     "Found inconsistent ranks for shards: 1 and 2"),
    (lambda: st.Shard(torch.ones(2), ShardMetadata([0], [3])), "Shard tensor size does not match"),
    (lambda: _remote_device("a/b/c"), "Could not parse remote_device: a/b/c"),
    (lambda: _remote_device(""), "Could not parse remote_device"),
])
def test_what_is_refused(made, message):
    with pytest.raises(ValueError, match=message):
        made()


def test_remote_devices():
    for name, worker, rank in (("cpu", None, None), ("rank:1/cpu", None, 1),
                               ("worker0/cpu", "worker0", None), ("worker1", "worker1", None)):
        place = _remote_device(name)
        assert (place.worker_name(), place.rank()) == (worker, rank)
        assert place.device() == torch.device("cpu") and _remote_device(repr(place)) == place


def test_cuts_are_recognized():
    def two(first, second):
        return [ShardMetadata([0, 0], [first, 2], "rank:0/cpu"),
                ShardMetadata([first, 0], [second, 2], "rank:1/cpu")]
    assert _infer_sharding_spec_from_shards_metadata(two(2, 1)) == rows()
    assert isinstance(_infer_sharding_spec_from_shards_metadata(two(1, 2)),
                      EnumerableShardingSpec)
