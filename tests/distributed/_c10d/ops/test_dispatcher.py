"""Collectives as ops of `torch.ops.c10d`."""
from __future__ import annotations

from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.utils._python_dispatch import TorchDispatchMode


class Noting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_modes_see_collectives(alone):
    x, y = torch.ones(2), torch.zeros(2)
    with Noting() as mode:
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        dist.all_gather([y], x)
        dist.reduce_scatter_tensor(y, x)
        dist.all_to_all_single(y, x)
        dist.scatter(y, [x])
    assert mode.names == ["c10d.allreduce_.default", "c10d.broadcast_.default",
                          "c10d.allgather_.default", "c10d._reduce_scatter_base_.default",
                          "c10d.alltoall_base_.default", "c10d.scatter_.default"]
    assert y.tolist() == [1, 1]


def test_what_a_mode_gets(alone):
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(args)
            return func(*args, **(kwargs or {}))
    x = torch.ones(2)
    options = dist.BroadcastOptions()
    options.timeout = timedelta(seconds=2)
    with Mode():
        dist.group.WORLD.broadcast([x], options).wait()
    (tensors, _, root, place, *rest), = seen
    assert tensors[0] is x and (root, place) == (0, 0) and rest[-1] == 2000


def test_calls_by_name(alone):
    c10d, group = torch.ops.c10d, dist.group.WORLD.boxed()
    x, y = torch.ones(2), torch.zeros(2)
    outputs, work = c10d.allgather_([[y]], [x], group, False, 1000)
    work.wait()
    assert outputs[0][0].tolist() == y.tolist() == [1, 1]
    output, work = c10d._allgather_base_(y, x * 3, group)
    work.wait()
    assert output.tolist() == [3, 3]
    c10d.gather_([[y]], [x], group, 0).wait()
    assert y.tolist() == [1, 1]
    c10d.barrier(x, group, [], True, -1).wait()
    c10d.monitored_barrier_(x, group, [], 1000, False)


def test_nan_is_found():
    c10d = torch.ops.c10d
    c10d.check_for_nan(torch.tensor([1, 2]))
    c10d.check_for_nan(torch.ones(0))
    with pytest.raises(RuntimeError, match="NaN found in input tensor"):
        c10d.check_for_nan(torch.tensor([1.0, float("nan")]))


@pytest.mark.parametrize(("name", "text"), [
    ("allreduce_", "(Tensor[] tensors, __torch__.torch.classes.c10d.ProcessGroup process_group, "
     "__torch__.torch.classes.c10d.ReduceOp reduce_op, Tensor? sparse_indices, bool async_op=True, "
     "int timeout=-1) -> (Tensor[], __torch__.torch.classes.c10d.Work)"),
    ("recv_", "(Tensor[] tensors, __torch__.torch.classes.c10d.ProcessGroup process_group, int src,"
     " int tag) -> __torch__.torch.classes.c10d.Work")])
def test_schemas(name, text):
    assert str(getattr(torch.ops.c10d, name).default._schema) == f"c10d::{name}{text}"
