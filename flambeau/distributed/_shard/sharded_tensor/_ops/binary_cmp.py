"""Are two sharded tensors the same?"""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard.sharded_tensor import ShardedTensor, _sharded_op_impl


def _communicate_result(result: Any, pg: Any) -> bool:
    """Is it so at all processes?"""
    count = flambeau.tensor(int(bool(result)))
    dist.all_reduce(count, group=pg)
    return count.item() == dist.get_world_size(pg)


def binary_cmp(cmp_fun: Any, types: Any, args: Any, kwargs: Any = None,
               process_group: Any = None) -> bool:
    """Compare the pieces of two sharded tensors."""
    if len(args) != 2:
        raise ValueError(f"Expected two arguments for torch.{cmp_fun.__name__}")
    first, second = args
    if not (isinstance(first, ShardedTensor) and isinstance(second, ShardedTensor)):
        raise TypeError("Both arguments to torch."
                        f"{cmp_fun.__name__} need to be of type ShardedTensor")
    if first._process_group is not second._process_group:
        return False
    if dist.get_rank(first._process_group) < 0:
        return dist.get_rank(second._process_group) < 0
    if len(first.local_shards()) != len(second.local_shards()):
        return _communicate_result(False, first._process_group)
    if first.sharding_spec() != second.sharding_spec() or \
            first.metadata() != second.metadata() or first.is_pinned() != second.is_pinned():
        return _communicate_result(False, first._process_group)
    same = all(a.metadata == b.metadata and cmp_fun(a.tensor, b.tensor, **(kwargs or {}))
               for a, b in zip(first.local_shards(), second.local_shards()))
    return _communicate_result(same, first._process_group)


@_sharded_op_impl(flambeau.equal)
def equal(types: Any, args: Any, kwargs: Any, process_group: Any) -> bool:
    """Are all values the same?"""
    return binary_cmp(flambeau.equal, types, args, kwargs, process_group)


@_sharded_op_impl(flambeau.allclose)
def allclose(types: Any, args: Any, kwargs: Any, process_group: Any) -> bool:
    """Are all values nearly the same?"""
    return binary_cmp(flambeau.allclose, types, args, kwargs, process_group)
