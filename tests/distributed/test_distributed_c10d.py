"""What the module knows of groups, and what its functions refuse."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau._C import _distributed_c10d as c
from flambeau.distributed import distributed_c10d as c10d


def test_what_is_known_of_groups(alone):
    world = c10d._world
    assert world.pg_config_info[0]["pg_desc"] == "default_pg" and list(c10d._pg_map) == [
        dist.group.WORLD]
    assert c10d._get_pg_config() == {
        "pg_name": world.pg_names[dist.group.WORLD], "pg_desc": "default_pg", "pg_size": 1,
        "backend_config": "cpu:gloo,cuda:gloo", "ranks": [0]}
    assert dist.group.WORLD.name() == "gloo" and dist.get_backend_config() == "cpu:gloo,cuda:gloo"
    assert isinstance(dist.ReduceOp.SUM, dist.ReduceOp)
    assert dist.ReduceOp(dist.ReduceOp.MAX) == dist.ReduceOp.MAX
    with pytest.raises(RuntimeError, match="Only PREMUL_SUM supports accessing factor"):
        dist.ReduceOp(dist.ReduceOp.MAX).factor
    with pytest.warns(FutureWarning, match="`torch.distributed.reduce_op` is deprecated"):
        assert dist.reduce_op.SUM == dist.ReduceOp.SUM
    assert dist.is_backend_available("cpu:gloo") and not dist.is_backend_available("nccl")
    with pytest.raises(ValueError, match="The custom backend string argument is invalid"):
        dist.BackendConfig("a:b:c")
    assert c._compute_bucket_assignment_by_size(
        [torch.empty(10), torch.empty(10), torch.empty(3)], [40, 80]) == ([[0], [1, 2]], [40, 80])


@pytest.mark.parametrize("call, error, text", [
    (lambda x: dist.broadcast(x), ValueError, "Must specify global_rank or group_rank"),
    (lambda x: dist.broadcast(x, 1, group_src=1), ValueError, "Can't specify both group_rank"),
    (lambda x: dist.gather(x), ValueError, "``gather_list`` must be specified on destination"),
    (lambda x: dist.P2POp(3, x, 0), ValueError, "Expected ``op`` to be of type"),
    (lambda x: dist.batch_isend_irecv([3]), ValueError, "Each op is expected to"),
    (lambda x: dist.new_group([3]), ValueError, "Rank 3 is out of range. Valid ranks are 0 to 0"),
    (lambda x: dist.new_subgroups_by_enumeration([[0], [0]]), ValueError, "appeared in both"),
    (lambda x: dist.split_group(), ValueError, "split_ranks cannot be None or empty"),
    (lambda x: dist.get_backend(-100), ValueError, "Invalid process group specified"),
    (lambda x: dist.get_group_rank(3, 1), ValueError, "Group 3 is not registered"),
    (lambda x: dist.group.WORLD._get_backend("meta"), RuntimeError, "No backend type associated"),
    (lambda x: dist.all_reduce(x, op=dist.ReduceOp.BAND), RuntimeError, "with non-integral dtype"),
])
def test_refusals(alone, call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(2))
