"""What is remembered of calls can be forgotten."""
from tensor_cases import R, imagined, put

import flambeau as torch
from flambeau.distributed.tensor import Shard, debug
from flambeau.distributed.tensor._sharding_prop import rules


def test_rules_are_asked_again_once_the_cache_is_empty():
    with imagined(2) as mesh:
        x = put(torch.ones(4, 2), mesh, Shard(0))
        debug._clear_sharding_prop_cache()
        assert torch.sinh(x).placements == (Shard(0),)
        rules["aten::sinh"] = lambda schema: []
        try:
            assert torch.sinh(x).placements == (Shard(0),)          # remembered
            debug._clear_sharding_prop_cache()
            assert torch.sinh(x).placements == (R,)
        finally:
            del rules["aten::sinh"]
            debug._clear_sharding_prop_cache()
