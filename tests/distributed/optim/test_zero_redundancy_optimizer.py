"""Optimizers whose state is spread over processes train like whole ones."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step
from flambeau.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from flambeau.distributed.optim import ZeroRedundancyOptimizer as Zero
from flambeau.nn.parallel import DistributedDataParallel as DDP


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 5), nn.Linear(5, 1))


def train(model, optimizer, rank, steps=3):
    x = torch.arange(8.0).view(2, 4) / 8 + rank
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).pow(2).sum().backward()
        optimizer.step()


def same(a, b):
    for p, q in zip(a.parameters(), b.parameters()):
        torch.testing.assert_close(p, q)


def shares(rank):
    whole, spread = DDP(network()), DDP(network())
    plain = torch.optim.Adam(whole.parameters(), lr=0.1)
    zero = Zero(spread.parameters(), torch.optim.Adam, lr=0.1)
    train(whole, plain, rank)
    train(spread, zero, rank)
    same(whole, spread)
    assert len(zero.optim.state) == 3 and len(zero.param_groups[0]["params"]) == 6
    sizes = [[tuple(p.shape) for p in groups[0]["params"]]
             for groups in zero._partition_parameters()]
    assert sizes == [[(5, 3), (1, 5), (1,)], [(3, 4), (5,), (3,)]]
    with pytest.raises(RuntimeError, match=rf"call `consolidate_state_dict\(to={rank}\)`"):
        zero.state_dict()
    zero.consolidate_state_dict(to=1)
    found = [zero.state_dict() if rank == 1 else None]
    dist.broadcast_object_list(found, src=1)
    assert sorted(found[0]["state"]) == list(range(6))
    again = Zero(spread.parameters(), torch.optim.Adam, lr=0.5)
    again.load_state_dict(found[0])
    assert again.param_groups[0]["lr"] == again.optim.param_groups[0]["lr"] == 0.1
    train(whole, plain, rank)
    train(spread, again, rank)
    same(whole, spread)


def views_and_groups(rank):
    whole, spread = DDP(network()), DDP(network())

    def groups(model):
        return [{"params": list(model.module[0].parameters()), "lr": 0.05},
                {"params": list(model.module[2].parameters())}]
    plain = torch.optim.SGD(groups(whole), lr=0.1)
    zero = Zero(groups(spread), torch.optim.SGD, lr=0.1, parameters_as_bucket_view=True)
    for optimizer, model in ((plain, whole), (zero, spread)):
        optimizer.param_groups[0]["lr"] = 0.2
        optimizer.add_param_group({"params": list(model.module[3].parameters()), "lr": 0.01})
        train(model, optimizer, rank, 2)
    same(whole, spread)
    assert [group["lr"] for group in zero.optim.param_groups] == [0.2, 0.1, 0.01]


def everything(rank):
    shares(rank)
    views_and_groups(rank)


def test_two_processes(processes):
    processes(everything)


@pytest.mark.parametrize(("params", "error", "message"), [
    ([], ValueError, "got an empty parameter list"),
    (3, TypeError, "should be an iterable of Tensors or dicts, but got int"),
    ([1], TypeError, "should be an iterable of Tensors or dicts"),
    (torch.ones(1), TypeError, "should be an iterable of Tensors, but got"),
    ([torch.ones(1), torch.ones(1, dtype=torch.float64)], ValueError,
     "got both torch.FloatTensor and torch.DoubleTensor"),
])
def test_what_is_refused(alone, params, error, message):
    with pytest.raises(error, match=message):
        Zero(params, torch.optim.SGD, lr=0.1)


def test_steps_in_backward_are_refused(alone):
    model = DDP(network())
    zero = Zero(model.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)
    with pytest.raises(RuntimeError, match="Gloo backend using Overlapping DDP with ZeRO"):
        hook_with_zero_step(allreduce_hook, model, zero)
    plain = Zero(model.parameters(), torch.optim.SGD, lr=0.1)
    with pytest.raises(ValueError, match="must be constructed with `overlap_with_ddp=True`"):
        hook_with_zero_step(allreduce_hook, model, plain)


def test_the_backend_that_nobody_named():
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = DDP(network())
        zero = Zero(model.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)
        with pytest.raises((RuntimeError, NotImplementedError), match=r"Gloo|the backend mpi"):
            hook_with_zero_step(allreduce_hook, model, zero)
    finally:
        dist.destroy_process_group()
