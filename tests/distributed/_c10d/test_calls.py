"""The forms in which the collectives of a group can be called."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist


def forms_of_calls(rank):
    group = dist.group.WORLD
    x = torch.ones(2) * (rank + 1)
    y = x.clone()
    group.allreduce(y).wait()
    assert y.tolist() == [3.0, 3.0]
    y = x.clone()
    assert group.allreduce([y], dist.ReduceOp.MAX).wait() and y.tolist() == [2.0, 2.0]
    y = x.clone()
    assert group.broadcast(y, root=1).wait() and y.tolist() == [2.0, 2.0]
    found = [torch.empty(2), torch.empty(2)]
    group.allgather(found, x).wait()
    assert [f.tolist() for f in found] == [[1.0, 1.0], [2.0, 2.0]]
    group.gather([found] if rank == 0 else [], [x], dist.GatherOptions()).wait()
    part = torch.empty(1)
    group.reduce_scatter(part, [torch.tensor([1.0 + rank]), torch.tensor([5.0])]).wait()
    assert part.item() == (3.0 if rank == 0 else 10.0)
    rows = torch.empty(4)
    group.alltoall_base(rows, torch.arange(4.0) + 10 * rank, [], []).wait()
    assert rows.tolist() == ([0.0, 1.0, 10.0, 11.0] if rank == 0 else [2.0, 3.0, 12.0, 13.0])
    many = [torch.ones(1) for _ in range(300)]
    group.allreduce(many).wait()
    assert all(t.item() == 2 for t in many)
    group.barrier().wait()
    group.barrier(dist.BarrierOptions()).wait()


def test_two_processes(processes):
    processes(forms_of_calls)


def test_options_and_what_they_say(alone):
    group, x = dist.group.WORLD, torch.arange(2.0)
    for call in (lambda: group.allreduce([x], dist.AllreduceOptions()),
                 lambda: group.allreduce([x]),
                 lambda: group.allreduce(x, dist.ReduceOp.MAX), lambda: group.broadcast([x]),
                 lambda: group.broadcast(x, root=0), lambda: group.reduce(x, root=0),
                 lambda: group.allreduce(x, op=dist.ReduceOp.SUM),
                 lambda: group.allgather([[x]], [x]), lambda: group.allgather([x], x),
                 lambda: group.gather([[x]], [x]), lambda: group.scatter([x], [[x]]),
                 lambda: group.reduce_scatter([x], [[x]]), lambda: group.barrier(),
                 lambda: group.alltoall_base(x, x, [], []), lambda: group.alltoall([x], [x])):
        assert call().wait() and x.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("call", [
    lambda group, x: group.allreduce(), lambda group, x: group.allreduce(x, ops=3),
    lambda group, x: group.broadcast(x, roots=0), lambda group, x: group.alltoall_base(x, x)])
def test_arguments_that_do_not_fit(alone, call):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(dist.group.WORLD, torch.ones(2))
