"""Gradients that three processes share; values from PyTorch's gloo."""
from __future__ import annotations

from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def shared_gradients(rank):
    model = network()
    if rank:
        model[0].weight.data.add_(1)                    # the first process's values count
    shared = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1e-4)
    assert len(shared.reducer.buckets) > 1
    data = torch.arange(24.0).view(6, 4) / 10
    optimizer = torch.optim.SGD(shared.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        shared(data[rank * 2:rank * 2 + 2]).pow(2).mean().backward()
        optimizer.step()
    alone = network()
    optimizer = torch.optim.SGD(alone.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        alone(data).pow(2).mean().backward()
        optimizer.step()
    for p, q in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(p, q)
    assert round(model[2].bias.item(), 5) == -0.17138   # PyTorch's
    model.zero_grad()
    with shared.no_sync():
        shared(data[rank:rank + 1]).sum().backward()
    own = model[2].weight.grad.clone()
    found = [torch.zeros_like(own) for _ in range(3)]
    dist.all_gather(found, own)
    assert not torch.equal(found[0], found[1])


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x, which):
        return getattr(self, which)(x)


def unused_parameters(rank):
    torch.manual_seed(1)
    model = Branches()
    shared = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    shared(torch.ones(1, 2), "ab"[rank % 2]).sum().backward()
    assert model.c.weight.grad is None
    torch.testing.assert_close(model.a.weight.grad, torch.full((1, 2), 2 / 3))
    torch.testing.assert_close(model.b.weight.grad, torch.full((1, 2), 1 / 3))
    strict = nn.parallel.DistributedDataParallel(Branches())
    strict(torch.ones(1, 2), "a").sum().backward()
    with pytest.raises(RuntimeError, match="Expected to have finished reduction in the prior"):
        strict(torch.ones(1, 2), "a")

    shared.zero_grad()
    with shared.no_sync():                      # what a pass has used counts in the next
        shared(torch.ones(1, 2), "ab"[rank % 2]).sum().backward()
    shared(torch.ones(1, 2), "c").sum().backward()
    torch.testing.assert_close(model.b.weight.grad, torch.full((1, 2), 1 / 3))
    with pytest.raises(RuntimeError, match="should be called before training loop starts"):
        shared._set_static_graph()
    known = shared._get_ddp_logging_data()
    assert known["has_error"] == 1 and known["iteration"] == 2

    def halved(state, bucket):
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] / 2)
    hooked = nn.parallel.DistributedDataParallel(nn.Linear(2, 1, bias=False))
    hooked.register_comm_hook(None, halved)
    hooked(torch.ones(1, 2)).sum().backward()
    assert hooked.module.weight.grad.tolist() == [[1.5, 1.5]]


def delayed_gradients(rank):
    """The gradients of the first layer, or all of them, travel when that of its weight comes."""
    data = torch.arange(24.0).view(6, 4) / 10
    alone = network()
    alone(data).pow(2).mean().backward()
    for names in (("0.weight", "0.bias"), ("0.weight", "0.bias", "2.weight", "2.bias")):
        model = network()
        if rank:
            model[0].weight.data.add_(1)
        named = dict(model.named_parameters())
        shared = nn.parallel.DistributedDataParallel(
            model, delay_all_reduce_named_params=[(name, named[name]) for name in names],
            param_to_hook_all_reduce=model[0].weight)
        with shared.no_sync():
            shared(data[rank * 2:rank * 2 + 2]).pow(2).mean().backward()
        model.zero_grad()
        shared(data[rank * 2:rank * 2 + 2]).pow(2).mean().backward()
        for p, q in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(p.grad, q.grad)
    with pytest.raises(ValueError, match="need to be set at the same time"):
        nn.parallel.DistributedDataParallel(network(), delay_all_reduce_named_params=[])


@pytest.mark.parametrize("work", [shared_gradients, unused_parameters, delayed_gradients])
def test_three_processes(work, processes):
    processes(work, size=3)


def test_options_reducers_and_names(alone):
    options = dist.AllreduceOptions()
    assert options.reduceOp == dist.ReduceOp.SUM and options.asyncOp
    assert options.timeout == timedelta(milliseconds=-1) == dist.ScatterOptions().timeout
    assert dist.ReduceOptions().rootRank == 0 and dist.BarrierOptions().device_ids == []
    assert repr(dist.BuiltinCommHookType.ALLREDUCE) == "<BuiltinCommHookType.ALLREDUCE: 1>"
    assert dist.GroupName("x") == "x"
    group = dist.group.WORLD
    group.allreduce([torch.ones(2)], options).wait()
    for kind in dist.BuiltinCommHookType:
        shared = nn.parallel.DistributedDataParallel(nn.Linear(2, 1, bias=False))
        shared._register_builtin_comm_hook(kind)
        shared(torch.ones(1, 2)).sum().backward()
        assert shared.module.weight.grad.tolist() == [[1.0, 1.0]]
    known = shared.logger._get_ddp_logging_data()
    assert known["bucket_sizes"] == "8" and known["world_size"] == 1
    layer = nn.Linear(2, 1)
    reducer = dist.Reducer(list(layer.parameters()), [[1], [0]], [8, 8], group)
    assert [len(bucket) for bucket in reducer.buckets] == [1, 1]
