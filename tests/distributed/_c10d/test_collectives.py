"""Collectives of a group of one, and of three; values from PyTorch's gloo."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist

SIZE = 3


def test_reductions_are_the_identity(alone):
    x = torch.arange(3.0)
    for op in ("SUM", "AVG", "MAX", "PRODUCT"):
        assert dist.all_reduce(x, op=getattr(dist.ReduceOp, op)) is None
    dist.reduce(x, 0)
    dist.broadcast(x, 0)
    assert x.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"Cannot use ReduceOp\.BAND with non-integral dtype"):
        dist.all_reduce(x, op=dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="broadcast: invalid root rank: 1"):
        dist.broadcast(x, 1)
    with pytest.raises(TypeError, match=r"Expected parameter `tensor` of type torch\.Tensor"):
        dist.all_reduce([x])


def test_gather_and_scatter(alone):
    x, out = torch.arange(3.0), torch.zeros(3)
    for call in (lambda o: dist.all_gather([o], x), lambda o: dist.gather(x, [o]),
                 lambda o: dist.scatter(o, [x]), lambda o: dist.reduce_scatter(o, [x]),
                 lambda o: dist.all_gather_into_tensor(o, x),
                 lambda o: dist.reduce_scatter_tensor(o, x),
                 lambda o: dist.all_to_all([o], [x]), lambda o: dist.all_to_all_single(o, x)):
        out.zero_()
        call(out)
        assert out.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"invalid tensor size at index 0 \(expected \(3\)"):
        dist.all_gather([torch.zeros(2)], x)
    with pytest.raises(RuntimeError, match="expected length 1, got 2"):
        dist.all_gather([out, out], x)
    with pytest.raises(ValueError, match="different dtypes"):
        dist.all_gather([torch.zeros(3, dtype=torch.int32)], x)
    with pytest.raises(ValueError, match="must be specified on source rank"):
        dist.scatter(out)


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


def sparse_sums(rank):
    mine = torch.sparse_coo_tensor(torch.arange(rank + 1)[None], torch.ones(rank + 1, 2), (3, 2))
    dist.all_reduce(mine)
    assert mine.is_sparse and mine.to_dense().tolist() == [[3, 3], [2, 2], [1, 1]]
    with pytest.raises(RuntimeError, match=r"sparse tensors only works with ReduceOp.SUM"):
        dist.all_reduce(mine, dist.ReduceOp.MAX)


@pytest.mark.parametrize("work", [reductions, movements, sparse_sums])
def test_three_processes(work, processes):
    processes(work, size=SIZE)


# ---- what is refused, by PyTorch in the same words -----------------------------------------------

def zeros(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype)


LIST = r"type List\[torch\.Tensor\]"
DTYPES = "Invalid usage of tensors with different dtypesFound torch.float32 and  torch.int32"
SHAPES = r"invalid tensor size at index 0 \(expected \(3\), got \(1, 3\)\)"


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda x: dist.all_reduce(x, op="sum"), TypeError, "incompatible function arguments"),
    (lambda x: dist.all_reduce(x * 1j, op=dist.ReduceOp.MAX), ValueError,
     "all_reduce does not support .* on complex tensors"),
    (lambda x: dist.reduce(x * 1j, 0, dist.ReduceOp.MAX), RuntimeError, "on complex tensors"),
    (lambda x: dist.all_reduce_coalesced([x, x.int()]), ValueError, DTYPES),
    (lambda x: dist.all_gather((zeros(3),), x), TypeError, LIST),
    (lambda x: dist.all_gather([zeros(1, 3)], x), RuntimeError, SHAPES),
    (lambda x: dist.all_gather_coalesced([[x], [x]], [x]), RuntimeError,
     "output lists should be equal to world size"),
    (lambda x: dist.gather(x, (zeros(3),)), TypeError, LIST),
    (lambda x: dist.gather(x, 3), TypeError, LIST),
    (lambda x: dist.gather(x, [x.int()]), ValueError, DTYPES),
    (lambda x: dist.gather(x, [zeros(1, 3)]), RuntimeError, SHAPES),
    (lambda x: dist.gather(x, [zeros(3)] * 2), RuntimeError,
     "Incorrect output list size 2. Output list size should be 1, same as size of the process"),
    (lambda x: dist.scatter(x, [x.int()]), ValueError, DTYPES),
    (lambda x: dist.scatter(x, [zeros(1, 3)]), RuntimeError, SHAPES),
    (lambda x: dist.scatter(x, [zeros(3)] * 2), RuntimeError,
     "Incorrect input list size 2. Input list size should be 1, same as size of the process"),
    (lambda x: dist.reduce_scatter(x, (x,)), TypeError, LIST),
    (lambda x: dist.reduce_scatter(x, [x.int()]), ValueError, DTYPES),
    (lambda x: dist.all_to_all([x], [x, x]), RuntimeError,
     "alltoall: input tensor list size 2 does not match world size 1"),
    (lambda x: dist.all_to_all([x, x], [x]), RuntimeError,
     "alltoall: output tensor list size 2 does not match world size 1"),
    (lambda x: dist.all_to_all_single(x, x, [3, 0], [3]), RuntimeError,
     "Number of tensor splits not equal to group size"),
    (lambda x: dist.all_to_all_single(x, x, [2], [3]), RuntimeError,
     "Split sizes doesn't match total dim 0 size"),
    (lambda x: dist.barrier(timeout=3), TypeError, "timedelta"),
    (lambda x: dist.monitored_barrier(timeout=3), TypeError, "of type datetime.timedelta, got 3"),
])
def test_refusals(alone, call, error, words):
    with pytest.raises(error, match=words):
        call(torch.arange(3.0))


def test_which_reductions_know_complex_numbers():
    names = "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split()
    assert [n for n in names if dist.supports_complex(getattr(dist.ReduceOp, n))] == ["SUM", "AVG"]


def test_unusual_tensors(alone):
    for x in (torch.zeros(0), torch.tensor(3.0), torch.arange(6.0).view(2, 3).t(),
              torch.tensor([True]), torch.tensor([1j])):
        before = x.clone()
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        assert torch.equal(x, before)
    columns = zeros(3, 2).t()
    dist.all_gather([columns], torch.arange(6.0).view(2, 3))
    assert columns.tolist() == [[0, 1, 2], [3, 4, 5]] and columns.stride() == (1, 2)
    number = torch.zeros(())
    dist.all_to_all_single(number, torch.tensor(4.0))
    assert number.item() == 4


def test_seconds_instead_of_a_duration(alone):
    with pytest.warns(UserWarning, match="Please specify timeout arg as a timedelta"):
        dist.monitored_barrier(timeout=3.0)
