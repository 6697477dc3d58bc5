"""Rules of ops with placeholders; values from PyTorch."""
import flambeau as torch
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor._ops.single_dim_strategy import (
    _fill_single_dim_strategy_placeholders,
    _ShardingPlaceholder,
    register_single_dim_strategy,
)
from flambeau.distributed.tensor.placement_types import _StridedShard

library = torch.library.Library("single_dim", "DEF")
library.define("scale(Tensor x, Tensor y, float a) -> Tensor")
library.impl("scale", lambda x, y, a: x * y * a, "CompositeExplicitAutograd")
library._register_fake("scale", lambda x, y, a: x.new_empty(x.shape))


def check(rank):
    seen = []

    @register_single_dim_strategy(torch.ops.single_dim.scale.default)
    def rows(op, args, kwargs):
        seen.append((op, args[0].shape, args[2], kwargs))
        return [[_ShardingPlaceholder(0)] * 3, [Partial(), Partial(), Replicate()]]
    mesh, ones = init_device_mesh("cpu", (2,)), torch.ones(4, 2)

    def placed(x, y):
        found = torch.ops.single_dim.scale(x, distribute_tensor(ones, mesh, [y]), 2.0)
        assert torch.equal(found.full_tensor(), x.full_tensor() * 2)
        return found.placements
    cut = distribute_tensor(ones, mesh, [Shard(0)])
    assert placed(cut, Shard(0)) == (Shard(0),) and placed(cut, Replicate()) == (Shard(0),)
    assert placed(DTensor.from_local(ones, mesh, [Partial()]), Replicate()) == (Partial(),)
    placed(distribute_tensor(ones, mesh, [Shard(1)]), Replicate())
    assert seen[0] == (torch.ops.single_dim.scale.default, (4, 2), 2.0, {})


def test_two_processes(processes):
    processes(check)


def test_placeholders():
    row = [_ShardingPlaceholder(1), Replicate()]
    assert _fill_single_dim_strategy_placeholders(set(), [row]) == [[Shard(1), Replicate()]]
    strided = _StridedShard(0, split_factor=2)
    assert _fill_single_dim_strategy_placeholders({strided}, [row])[1][0] == \
        _StridedShard(1, split_factor=2)
    assert row[0] == _ShardingPlaceholder(1) and "dim=1" in repr(row[0])
