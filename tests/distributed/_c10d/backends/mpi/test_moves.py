"""How tensors move over MPI, between ranks of one thread."""
from __future__ import annotations

import pytest
from communicator import communicators, run

import flambeau as torch
from flambeau.distributed._c10d.backends.mpi import data, moves

SIZE = 3


@pytest.fixture
def channels(monkeypatch):
    """As if MPI's own reductions knew no type: all is made of messages."""
    monkeypatch.setattr(moves, "native", lambda dtype, op: None)
    for module in (moves, data):
        monkeypatch.setattr(module, "as_bytes", lambda array: [array])
    return [moves.Channel(comm, rank, SIZE) for rank, comm in enumerate(communicators(SIZE))]


def each(channels, move, *columns):
    """`move(channel, …)` of all ranks; a column has a value for each rank, or one for all."""
    rows = [[column[rank] if isinstance(column, list) else column for column in columns]
            for rank in range(SIZE)]
    run(*[move(channel, *row) for channel, row in zip(channels, rows)])


def ranked(*shape, dtype=torch.float32):
    return [torch.full(shape, float(rank + 1)).to(dtype) for rank in range(SIZE)]


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize(("op", "wanted"), [("SUM", 6), ("AVG", 2), ("PRODUCT", 6), ("MIN", 1),
                                            ("MAX", 3)])
def test_all_reduce(channels, count, op, wanted):
    tensors = ranked(count)
    each(channels, moves.all_reduce, tensors, op)
    assert all(t.tolist() == [wanted] * count for t in tensors)


def test_large_tensors_move_in_blocks(channels, monkeypatch):
    monkeypatch.setattr(moves, "_BLOCK", 16)
    tensors = [torch.arange(40.0).view(8, 5).t() + rank for rank in range(SIZE)]
    each(channels, moves.all_reduce, tensors, "SUM")
    assert all(torch.equal(t, 3 * torch.arange(40.0).view(8, 5).t() + 3) for t in tensors)


def test_halves_and_truths(channels):
    for dtype, wanted in ((torch.bfloat16, 6), (torch.bool, True), (torch.complex64, 6)):
        tensors = ranked(4, dtype=dtype)
        each(channels, moves.all_reduce, tensors, "SUM")
        assert all(t.tolist() == [wanted] * 4 for t in tensors)


def test_what_one_has_or_gets(channels):
    tensors = ranked(2)
    each(channels, moves.broadcast, tensors, 1)
    assert all(t.tolist() == [2, 2] for t in tensors)
    tensors = ranked(2)
    each(channels, moves.reduce, tensors, "AVG", 2)
    assert [t[0].item() for t in tensors] == [1, 2, 2]
    outputs = [[torch.zeros(2) for _ in range(SIZE)], [], []]
    each(channels, moves.gather, outputs, ranked(2), 0)
    assert [t.tolist() for t in outputs[0]] == [[1, 1], [2, 2], [3, 3]]
    parts = [[], [], ranked(2)]
    outputs = ranked(2)
    each(channels, moves.scatter, outputs, parts, 2)
    assert [t[1].item() for t in outputs] == [1, 2, 3]


def test_parts_for_all(channels):
    outputs = [[torch.zeros(1) for _ in range(SIZE)] for _ in range(SIZE)]
    inputs = [[torch.tensor([10.0 * rank + to]) for to in range(SIZE)] for rank in range(SIZE)]
    each(channels, moves.exchange, outputs, inputs)
    assert [[t.item() for t in row] for row in outputs] == [
        [10.0 * source + rank for source in range(SIZE)] for rank in range(SIZE)]
    wholes = [torch.zeros(6), torch.zeros(6), torch.zeros(2, 3).t()]        # one not in order
    each(channels, moves.all_gather_into, wholes, ranked(2))
    assert all(t.flatten().tolist() == [1, 1, 2, 2, 3, 3] for t in wholes)
    outputs = [torch.zeros(rank) for rank in range(SIZE)]                   # of different sizes
    each(channels, moves.reduce_scatter, outputs,
         [[torch.full((i,), float(rank)) for i in range(SIZE)] for rank in range(SIZE)], "SUM")
    assert [t.tolist() for t in outputs] == [[], [3], [3, 3]]


def test_a_group_of_one(channels):
    channel, x = moves.Channel(None, 0, 1), torch.ones(2)
    for op in ("SUM", "AVG"):
        run(moves.all_reduce(channel, x, op), moves.reduce(channel, x, op, 0))
    run(moves.broadcast(channel, x, 0))
    out = torch.zeros(2)
    run(moves.reduce_scatter(channel, out, [x], "SUM"))
    assert x.tolist() == out.tolist() == [1, 1]
