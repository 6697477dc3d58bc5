"""Collectives, messages and shared gradients of three processes; values from PyTorch's gloo."""
from __future__ import annotations

from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn

SIZE = 3


def reductions(rank):
    x = torch.arange(4.0) + rank
    for op, wanted in (("SUM", [3.0, 6.0, 9.0, 12.0]), ("PRODUCT", [0.0, 6.0, 24.0, 60.0]),
                       ("MIN", [0.0, 1.0, 2.0, 3.0]), ("MAX", [2.0, 3.0, 4.0, 5.0]),
                       ("AVG", [1.0, 2.0, 3.0, 4.0])):
        y = x.clone()
        dist.all_reduce(y, getattr(dist.ReduceOp, op))
        assert y.tolist() == wanted, op
    bits = torch.tensor([6, rank + 1])
    dist.all_reduce(bits, dist.ReduceOp.BAND)
    assert bits.tolist() == [6, 0]
    half = torch.ones(2, dtype=torch.bfloat16)
    work = dist.all_reduce(half, async_op=True)
    assert work.wait() and work.is_completed() and half.tolist() == [3.0, 3.0]
    y = x.clone()
    dist.reduce(y, 0)
    assert rank or y.tolist() == [3.0, 6.0, 9.0, 12.0]
    out = torch.zeros(2)
    dist.reduce_scatter(out, [torch.ones(2) * (i + rank) for i in range(SIZE)])
    assert out.tolist() == [3.0 + 3 * rank] * 2
    parts = [torch.full((i,), float(rank)) for i in range(SIZE)]       # of different sizes
    own = torch.zeros(rank)
    dist.reduce_scatter(own, parts)
    assert own.tolist() == [3.0] * rank
    dist.reduce_scatter(own, parts, dist.ReduceOp.MAX)
    assert own.tolist() == [2.0] * rank
    with pytest.raises(RuntimeError, match="invalid tensor size at index"):
        dist.reduce_scatter(torch.zeros(3), parts)
    with pytest.raises(RuntimeError, match="invalid input tensor list size, must be world size"):
        dist.reduce_scatter(own, parts[:2])
    dist.reduce_scatter_tensor(out, torch.arange(6.0) + rank)
    assert out.tolist() == [[3.0, 6.0], [9.0, 12.0], [15.0, 18.0]][rank]


def movements(rank):
    x = torch.arange(4.0) + rank
    every = [[0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0]]
    y = x.clone()
    dist.broadcast(y, 1)
    assert y.tolist() == every[1]
    found = [torch.zeros(4) for _ in range(SIZE)]
    dist.all_gather(found, x)
    assert [f.tolist() for f in found] == every
    flat = torch.zeros(12)
    dist.all_gather_into_tensor(flat, x)
    assert flat.tolist() == [value for values in every for value in values]
    gathered = [torch.zeros(4) for _ in range(SIZE)] if rank == 1 else None
    dist.gather(x, gathered, dst=1)
    assert rank != 1 or [f.tolist() for f in gathered] == every
    part = torch.zeros(2)
    dist.scatter(part, [torch.ones(2) * i for i in range(SIZE)] if rank == 0 else None, src=0)
    assert part.tolist() == [rank, rank]
    outputs = [torch.zeros(1) for _ in range(SIZE)]
    dist.all_to_all(outputs, [torch.tensor([10.0 * rank + i]) for i in range(SIZE)])
    assert [o.item() for o in outputs] == [rank, 10.0 + rank, 20.0 + rank]
    rows = torch.zeros(3 * (rank + 1), 1)
    dist.all_to_all_single(rows, torch.full((6, 1), float(rank)), [rank + 1] * 3, [1, 2, 3])
    assert rows.flatten().tolist() == sorted([0.0, 1.0, 2.0] * (rank + 1))


def messages(rank):
    if rank == 0:
        dist.send(torch.tensor([7.0]), 1)
    elif rank == 1:
        y = torch.zeros(1)
        assert dist.recv(y, 0) == 0 and y.item() == 7.0
    y = torch.zeros(3)
    for work in dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.ones(3) * rank, (rank + 1) % SIZE),
            dist.P2POp(dist.irecv, y, (rank - 1) % SIZE)]):
        work.wait()
    assert y.tolist() == [(rank - 1) % SIZE] * 3
    dist.barrier()
    if rank:
        dist.send(torch.tensor([float(rank)]), 0)
    else:
        y = torch.zeros(1)
        assert sorted((dist.recv(y), y.item()) for _ in range(2)) == [(1, 1.0), (2, 2.0)]
    with pytest.raises(ValueError, match="should not be the same as the rank of the current"):
        dist.send(y, rank)


def objects_and_groups(rank):
    found = [None] * SIZE
    dist.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": i} for i in range(SIZE)]
    shared, mine = [rank, "a"], [None]
    dist.broadcast_object_list(shared, src=1)
    dist.scatter_object_list(mine, [0, 1, 4] if rank == 0 else None, src=0)
    assert shared == [1, "a"] and mine == [rank * rank]
    pair, single = dist.new_group([0, 1]), dist.new_group([1])
    assert (dist.get_rank(pair), dist.get_rank(single)) == [(0, -1), (1, 0), (-1, -1)][rank]
    if rank < 2:
        y = torch.ones(1) * (rank + 1)
        dist.all_reduce(y, group=pair)
        assert y.item() == 3.0 and dist.get_process_group_ranks(pair) == [0, 1]
    alone, every = dist.new_subgroups(1)
    assert dist.get_world_size(alone) == 1 and len(every) == SIZE
    dist.monitored_barrier()
    for call, error, message in (
            (lambda: dist.broadcast(torch.ones(1), 6), RuntimeError, "invalid root rank: 6"),
            (lambda: dist.all_gather([torch.ones(1)], torch.ones(1)), RuntimeError,
             r"expected length 3, got 1")):
        with pytest.raises(error, match=message):
            call()


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
    found = [torch.zeros_like(own) for _ in range(SIZE)]
    dist.all_gather(found, own)
    assert not torch.equal(found[0], found[1])


def sparse_sums(rank):
    mine = torch.sparse_coo_tensor(torch.arange(rank + 1)[None], torch.ones(rank + 1, 2), (3, 2))
    dist.all_reduce(mine)
    assert mine.is_sparse and mine.to_dense().tolist() == [[3, 3], [2, 2], [1, 1]]
    with pytest.raises(RuntimeError, match=r"sparse tensors only works with ReduceOp.SUM"):
        dist.all_reduce(mine, dist.ReduceOp.MAX)


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


def futures_of_collectives(rank):
    """Who waits for a future moves the collective on, also what follows it."""
    x = torch.full((100_000,), float(rank))
    work = dist.all_reduce(x, async_op=True)
    twice = work.get_future().then(lambda done: done.value()[0] * 2)
    again = twice.then(lambda done: done.value().sum().item())
    assert again.wait() == 2 * 3 * 100_000 and twice.done() and work.is_success()
    futures = [dist.all_reduce(torch.ones(3), async_op=True).get_future() for _ in range(4)]
    assert [v[0].tolist() for v in torch.futures.wait_all(futures)] == [[3.0] * 3] * 4


@pytest.mark.parametrize("work", [reductions, movements, messages, objects_and_groups,
                                  shared_gradients, sparse_sums,
                                  unused_parameters, delayed_gradients, futures_of_collectives])
def test_three_processes(work, processes):
    processes(work, size=SIZE)


def test_processes_that_do_not_come_are_named(tmp_path):
    with pytest.raises(dist.DistNetworkError, match=r"ranks \[1\] have not called rank 0"):
        dist.init_process_group("gloo", init_method=f"file://{tmp_path}/f", rank=0, world_size=2,
                                timeout=timedelta(seconds=0.3))
    assert not dist.is_initialized()


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
