"""Gathering the parameters of a group and reducing their gradients, all in one message."""
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.fsdp import fully_shard
from flambeau.distributed.fsdp._fully_shard import _fsdp_collectives as collectives


@pytest.mark.parametrize(("count", "dtype", "factor", "divisors"), [
    (4, torch.float32, None, (1, 4)), (4, torch.bfloat16, 2.0, (1, 2)),
    (1, torch.float16, None, (1, 1)), (8, torch.float16, None, (4, 2)),
    (6, torch.float16, None, (4, 1.5)), (3, torch.float16, None, (2, 1.5))])
def test_divisors(count, dtype, factor, divisors):
    assert collectives._get_gradient_divide_factors(count, dtype, factor) == divisors
    assert divisors[0] * divisors[1] == (factor or count)


def test_division():
    x = torch.full((2,), 6.0)
    collectives._div_if_needed(x, None)
    collectives._div_if_needed(x, 1.0)
    assert x.tolist() == [6, 6]
    collectives._div_if_needed(x, 3.0)
    assert x.tolist() == [2, 2]


@pytest.mark.parametrize("make", [
    collectives.DefaultAllGather, collectives.DefaultReduceScatter,
    lambda: collectives.ProcessGroupAllocAllGather(dist.group.WORLD),
    lambda: collectives.ProcessGroupAllocReduceScatter(dist.group.WORLD)])
def test_memory(alone, make):
    found = make().allocate((2, 3), dtype=torch.float16, device=torch.device("cpu"))
    assert found.shape == (2, 3) and found.dtype is torch.float16


def messages(rank):
    world = dist.group.WORLD
    model = fully_shard(nn.Linear(3, 5))
    group = model._get_fsdp_state()._fsdp_param_group
    params, gather = group.fsdp_params, collectives.DefaultAllGather()
    pieces = [p.sharded_param.to_local().detach() for p in params]
    assert [tuple(p.shape) for p in pieces] == [[(3, 3), (3,)], [(2, 3), (2,)]][rank]
    with torch.no_grad():
        result = collectives.foreach_all_gather(params, world, False, gather)
        assert result.output.shape == (2, 12) and result.sizes == [9, 3]
        mine = torch.cat([p.flatten() for p in pieces])
        for begin, piece in zip((0, 9), pieces):
            assert torch.equal(result.output[rank, begin:begin + piece.numel()], piece.flatten())
        assert mine.numel() == (12, 8)[rank]
        collectives.foreach_all_gather_copy_out(result, params)
        for p, piece in zip(params, pieces):
            rows = slice(0, 3) if rank == 0 else slice(3, 5)
            assert torch.equal(p.unsharded_local()[rows], piece)
        grads = [torch.full((5, 3), float(rank + 1)), torch.full((5,), 10.0 * (rank + 1))]
        flat = collectives.foreach_reduce(params, grads, world, collectives.DefaultReduceScatter(),
                                          torch.float32, collectives.Divisors(1.0, 2.0))
        own = params[0].take_reduced(flat[:9])
        assert own.to_local().unique().tolist() == [3.0] and own.shape == (5, 3)


def test_two_processes(processes):
    processes(messages)
