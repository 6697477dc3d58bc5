"""Parameters of modules as sharded tensors."""
import pickle

import pytest
from shard_cases import about, columns, deprecated, rows, whole

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed._shard import (
    _shard_tensor,
    load_with_process_group,
    shard_module,
    shard_parameter,
)
from flambeau.distributed._shard import api as shard
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharder import Sharder
from flambeau.distributed._shard.sharding_plan import ShardingPlan
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec, EnumerableShardingSpec

pytestmark = deprecated


class ToIdentity(Sharder):
    def shard(self, module):
        return nn.Identity()


def test_parameters_that_are_refused(alone):
    model = nn.Linear(2, 2)
    model.number, model.turned = 3, nn.Parameter(torch.ones(2, 3).t())
    for name, kind, message in (
            ("nope", AttributeError, "Linear has no attribute `nope`"),
            ("number", ValueError, "Expected Linear.number to be a Tensor, but found int"),
            ("turned", ValueError, "param: turned is not a contiguous Tensor")):
        with pytest.raises(kind, match=message):
            shard_parameter(model, name, whole())
    with pytest.raises(ValueError, match="input tensor is not a contiguous Tensor"):
        _shard_tensor(torch.ones(2, 3).t(), whole())
    with pytest.raises(NotImplementedError, match=r"EnumerableShardingSpec.shard not implemented"):
        _shard_tensor(torch.ones(2), EnumerableShardingSpec([about((0,), (2,))]))


@pytest.mark.parametrize(("plan", "kind", "message"), [
    ({"weight": 3}, TypeError, "Only `ShardingSpec` and `Sharder` are supported to shard 'weight'"),
    ({"nope.weight": whole()}, AttributeError, "has no attribute `nope`"),
    ({"": ToIdentity()}, KeyError, "Module path must not be empty for custom sharder!"),
    ({"0": ToIdentity(), "0.weight": whole()}, RuntimeError,
     "trying to shard a parameter: 0.weight, but there's already a Sharder entry for module 0")])
def test_plans_that_are_refused(alone, plan, kind, message):
    with pytest.raises(kind, match=message):
        shard_module(nn.Sequential(nn.Linear(2, 2)), ShardingPlan(plan))


def test_outputs_that_are_refused(alone):
    with pytest.raises(TypeError, match="Only `ShardingSpec` is supported as output_plan for '0'"):
        shard_module(nn.Sequential(nn.Linear(2, 2)), ShardingPlan({}, {"0": 3}))


class Maker(nn.Module):
    """Gives a sharded tensor."""

    def __init__(self, made):
        super().__init__()
        self.made = made

    def forward(self, x):
        return self.made


def test_outputs(alone):
    model = nn.Sequential(Maker(st.ones(whole(), 1, 3)))
    shard_module(model, ShardingPlan({}, {"0": columns(0)}))
    assert model(None).sharding_spec() == columns(0)
    model = nn.Sequential(Maker(st.ones(whole(), 1, 3)))
    shard_module(model, ShardingPlan({}, return_local_tensor=["0"]))
    assert model(None).tolist() == [1, 1, 1]            # the dimension of one row is left out
    plain = nn.Sequential(nn.Identity())
    shard_module(plain, ShardingPlan({}, {"0": whole()}, ["0"]))
    x = torch.ones(2)
    assert plain(x) is x


def test_groups_of_pickles(alone):
    group = dist.new_group([0])
    data = pickle.dumps(st.ones(whole(), 2))
    assert pickle.loads(data)._process_group is dist.group.WORLD
    with load_with_process_group(group) as entered:
        assert entered is group is shard._get_current_process_group()
        assert pickle.loads(data)._process_group is group
        with pytest.raises(RuntimeError, match="ProcessGroup already set by previous"), \
                load_with_process_group(group):
            pass
    assert shard._get_current_process_group() is dist.group.WORLD


def parameters(rank):
    torch.manual_seed(rank)
    group = dist.group.WORLD
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 2))
    first = model[0].weight.detach().clone()
    dist.broadcast(first, 1)
    shard_parameter(model[0], "weight", rows(), src_rank=1, process_group=group)
    assert torch.equal(model[0].weight.local_tensor(), first[2 * rank:2 * rank + 2])
    assert isinstance(model.state_dict()["0.weight"], st.ShardedTensor)
    shard_module(model, ShardingPlan({"1.weight": columns(0, 1)}), process_group=group)
    assert model[1].weight.local_tensor().shape == (2, 2)
    with pytest.raises(ValueError, match=f"src_rank=. on rank: {rank} does not match with "
                                         f"src_rank=. on rank: {1 - rank}"):
        _shard_tensor(torch.ones(2), rows(), src_rank=rank, process_group=group)
    with pytest.raises(ValueError, match=r"sharding_spec=.* does not match with sharding_spec="):
        _shard_tensor(torch.ones(2, 2), ChunkShardingSpec(rank, ["rank:0/cpu", "rank:1/cpu"]),
                      process_group=group)


def test_two_processes(processes):
    processes(parameters)
