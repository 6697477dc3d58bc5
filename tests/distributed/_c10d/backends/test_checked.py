"""What every backend of the CPU refuses, and what it hands on."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.autograd import profiler
from flambeau.distributed._c10d import options as o
from flambeau.distributed._c10d.backends.checked import CheckedBackend
from flambeau.distributed._c10d.work import Work


class Noting(CheckedBackend):
    """Notes what is to move, and moves nothing."""

    def __init__(self, rank, size):
        super().__init__(rank, size)
        self.calls = []

    def name(self):
        return "noting"

    def start(self, call, tensors, move, opts):
        move(len(self.calls))
        self.calls[-1] = (str(call), *self.calls[-1])
        return Work(tensors)

    def __getattr__(self, name):
        if not name.startswith("move_"):
            raise AttributeError(name)
        return lambda turn, *given: self.calls.append((name[5:], turn, given))


@pytest.fixture
def two():
    return Noting(1, 2)


x = torch.arange(4.0)


def test_what_a_collective_is_called(two):
    two.allreduce([x, x.int()[:2]], dist.ReduceOp.SUM)
    two.broadcast(x, root=1)
    two.barrier()
    two._allgather_base(torch.zeros(8), x)
    assert [call[0] for call in two.calls] == [
        "allreduce(float32[4], int32[2], SUM)", "broadcast(float32[4], root 1)", "barrier()",
        "allgather_into_tensor(float32[4])"]
    assert [call[2] for call in two.calls] == [0, 1, 2, 3]


def test_forms_are_one(two):
    """Whole tensors are cut into parts, columns are made rows."""
    out = torch.zeros(2)
    two._reduce_scatter_base(out, x)
    _, name, _, (outputs, inputs, ops, _) = two.calls[-1]
    assert name == "reduce_scatter" and outputs[0] is out and ops == ["SUM"]
    assert [part.tolist() for part in inputs[0]] == [[0, 1], [2, 3]]
    columns = [[torch.zeros(4), torch.zeros(1)] for _ in range(2)]
    two.allgather_coalesced(columns, [x, x[:1]])
    found = two.calls[-1][3][0]
    assert found[0][1] is columns[1][0] and found[1][0] is columns[0][1]
    two.alltoall_base(torch.zeros(4), x, [1, 3], [4, 0])
    _, name, _, (outputs, inputs, _) = two.calls[-1]
    assert name == "alltoall" and [t.numel() for t in (*outputs, *inputs)] == [1, 3, 4, 0]


def test_lists_of_the_root_alone_count(two):
    two.gather([], [x], root=0)
    two.scatter([x], [], root=0)
    assert [call[1] for call in two.calls] == ["gather", "scatter"]
    with pytest.raises(RuntimeError, match="Incorrect output list size 1"):
        two.gather([[x]], [x], root=1)


@pytest.mark.parametrize(("call", "words"), [
    (lambda b: b.broadcast(x, root=2), "Noting::broadcast: invalid root rank: 2"),
    (lambda b: b.allgather([[x]], [x]), r"Noting::allgather: .*\(expected length 2, got 1\)"),
    (lambda b: b._allgather_base(x, x), r"\(expected 2 times \(4\), got \(4\)\)"),
    (lambda b: b.reduce_scatter([x], [[x, x[:2]]]), r"size at index 1 \(expected \(4\), got \(2"),
    (lambda b: b.alltoall([x], [x, x]), "alltoall: output tensor list size 1 does not match world"),
    (lambda b: b.allreduce(x, dist.ReduceOp.BXOR), "Cannot use ReduceOp.BXOR with non-integral")])
def test_refusals(two, call, words):
    with pytest.raises(RuntimeError, match=words):
        call(two)
    assert two.calls == []


def test_others_begin_with_the_next():
    assert [Noting(rank, 3).others() for rank in range(3)] == [[1, 2], [2, 0], [0, 1]]


def test_collectives_are_events(two):
    with profiler.profile(record_shapes=True) as found:
        two.run_allreduce([x * 1j], o.AllreduceOptions())
        two.barrier()
    events = {e.name: e.input_shapes for e in found.function_events if "noting:" in e.name}
    assert list(events) == ["noting:all_reduce", "noting:barrier"]
    assert events["noting:all_reduce"] == [[4, 2]]
