"""Rules of the user's for ops on distributed tensors."""
from __future__ import annotations

import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor._sharding_prop import rules
from flambeau.distributed.tensor.experimental import (
    register_sharding,
)

aten = torch.ops.aten


@pytest.fixture
def mesh():
    """Process 1 of 2, the other imagined."""
    with imagined(2) as found:
        yield found


def put(mesh, *placements):
    return distribute_tensor(torch.ones(4, 2), mesh, placements, src_data_rank=None)


def test_rules_of_the_users(mesh):
    x = put(mesh, Shard(0))

    @register_sharding([aten.relu.default, aten.cumsum.default])
    def whole(x, *options):
        assert x.shape == (4, 2) and x.placements == (Shard(0),)
        return [([Replicate()], [Replicate()])]
    assert torch.relu(x).placements == (Replicate(),)

    @register_sharding(aten._softmax.default)
    def softmax(x, dim, half_to_float):
        return [([Shard(d)], [Shard(d), None, None]) for d in range(x.ndim) if d != dim]
    assert x.softmax(1).placements == (Shard(0),) and x.softmax(0).placements == (Replicate(),)

    @register_sharding(aten.sinh.default)
    def wrong(x):
        return [([Replicate()], [])]
    with pytest.raises(ValueError, match="has 1 tensors, but placements of 0 were given"):
        torch.sinh(x)
    for name in ("aten::relu", "aten::cumsum", "aten::_softmax", "aten::sinh"):
        del rules[name]
    DTensor._op_dispatcher.sharding_propagator._known.clear()
