"""Collectives over MPI, in processes that nobody but the test has started."""
from __future__ import annotations

import glob
import os

import pytest

from flambeau import distributed as dist
from flambeau.distributed._c10d.backends.mpi.process_manager import process_mapping

needs_mpi = pytest.mark.skipif(not dist.is_mpi_available(), reason="mpi4py or MPICH is missing")

COLLECTIVES = """
total = size * (size + 1) // 2
for name in ("float64 float32 float16 bfloat16 int8 uint8 int16 int32 int64 bool complex64 "
             "complex128 uint16 float8_e4m3fn").split():
    dtype = getattr(torch, name)
    for n in (1, 5, 30001):
        x = torch.full((n,), rank + 1).to(dtype)
        dist.all_reduce(x)
        wanted = torch.full((n,), bool(total) if name == "bool" else total).to(dtype)
        assert torch.equal(x.to(torch.complex64), wanted.to(torch.complex64)), (name, n)
for op, wanted in (("PRODUCT", [1, 2, 6][size - 1]), ("MIN", 1), ("MAX", size),
                   ("AVG", total / size)):
    for n in (3, 30001):
        x = torch.full((n,), float(rank + 1))
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        assert (x == wanted).all(), op
nan = torch.tensor([float("nan") if rank else 1.0])
dist.all_reduce(nan, dist.ReduceOp.MAX)
assert nan.isnan().all()
bits = torch.tensor([6, rank + 1])
dist.all_reduce(bits, dist.ReduceOp.BXOR)
columns = torch.full((3, 2000), float(rank + 1)).t()
dist.all_reduce(columns)                                    # not in order in memory
assert (columns == total).all() and bits[1] == [1, 3, 0][size - 1]
version = columns._version
dist.all_reduce(columns)
assert columns._version > version
for n in (1, 30001):
    x = torch.arange(n) + rank
    y = x.clone()
    dist.broadcast(y, 1)
    assert torch.equal(y, torch.arange(n) + 1)
    y = x.clone()
    dist.reduce(y, 0)
    assert rank or torch.equal(y, torch.arange(n) * size + total - size)
    every = [torch.arange(n) + i for i in range(size)]
    found = [torch.zeros_like(x) for _ in range(size)]
    dist.all_gather(found, x)
    assert all(map(torch.equal, found, every))
    flat = torch.zeros(n * size, dtype=x.dtype)
    dist.all_gather_into_tensor(flat, x)
    assert torch.equal(flat, torch.cat(every))
    found = [torch.zeros_like(x) for _ in range(size)] if rank == 1 else None
    dist.gather(x, found, dst=1)
    assert rank != 1 or all(map(torch.equal, found, every))
    dist.scatter(y, [x + 10 * i for i in range(size)] if rank == 0 else None, src=0)
    assert torch.equal(y, torch.arange(n) + 10 * rank)
    dist.reduce_scatter(y, [x + 10 * i for i in range(size)])
    assert torch.equal(y, torch.arange(n) * size + total - size + 10 * rank * size)
    own = torch.zeros(n + rank)                             # parts of different sizes
    dist.reduce_scatter(own, [torch.full((n + i,), float(rank + 1)) for i in range(size)])
    assert (own == total).all()
    part = torch.zeros(n)
    dist.reduce_scatter_tensor(part, torch.full((n * size,), float(rank + 1)))
    assert (part == total).all()
    found = [torch.zeros_like(x) for _ in range(size)]
    dist.all_to_all(found, [x + 10 * i for i in range(size)])
    assert all(map(torch.equal, found, [e + 10 * rank for e in every]))
rows = torch.zeros(size * (rank + 1), 1)
dist.all_to_all_single(rows, torch.full((total, 1), float(rank)), [rank + 1] * size,
                       [i + 1 for i in range(size)])
assert rows.flatten().tolist() == sorted([float(i) for i in range(size)] * (rank + 1))
alone = [dist.new_group([i]) for i in range(size)][rank]
one = torch.ones(1)
for call in (dist.all_reduce, lambda t, group: dist.broadcast(t, rank, group=group)):
    call(one, group=alone)                                  # a group of one has nobody to ask
assert one == 1
dist.barrier()
dist.monitored_barrier()
works = [dist.all_reduce(torch.ones(100) * i, async_op=True) for i in range(10)]
for work in reversed(works):
    assert work.wait()
assert works[3].result()[0][0] == 3 * size
future = dist.all_reduce(torch.ones(1000), async_op=True).get_future().then(
    lambda done: done.value()[0][0].item())
assert future.wait() == size                                # who waits moves it on
with dist._coalescing_manager() as manager:
    dist.all_reduce(x), dist.all_reduce(y)
say([dist.get_backend(), dist.get_backend_config()])
"""

MESSAGES = """
for n in (3, 100000):
    if rank == 0:
        dist.send(torch.full((n,), 7.0), 1)
    elif rank == 1:
        y = torch.zeros(n)
        assert dist.recv(y) == 0 and y[-1] == 7
    y = torch.zeros(n)
    for work in dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.full((n,), float(rank)), (rank + 1) % size),
            dist.P2POp(dist.irecv, y, (rank - 1) % size)]):
        work.wait()
    assert (y == (rank - 1) % size).all()
    if rank == 0:
        for value in (1.0, 2.0, 3.0):
            dist.send(torch.full((n,), value), 1)
        dist.send(torch.full((n,), 4.0), 1, tag=7)
    elif rank == 1:
        many = [torch.zeros(n) for _ in range(4)]
        works = [dist.irecv(many[0], 0), dist.irecv(many[1]), dist.irecv(many[2], 0),
                 dist.irecv(many[3], 0, tag=7)]
        for work in reversed(works):
            work.wait()
        assert [t[0].item() for t in many] == [1.0, 2.0, 3.0, 4.0]
if rank < 2:                                # the sender learns what did not fit, too
    with pytest.raises(RuntimeError, match="rank 0 at .*<string>.* sends torch.float32 .5000., but"
                       " rank 1 at .*<string>.* receives torch.float32 .3."):
        (dist.recv(torch.ones(3), 0) if rank else dist.send(torch.ones(5000), 1))
found = [None] * size
dist.all_gather_object(found, {"rank": rank})
assert found == [{"rank": i} for i in range(size)]
pair = dist.new_group([0, 1])
if rank < 2:
    x = torch.ones(3)
    dist.all_reduce(x, group=pair)
    assert x[0] == 2 and dist.get_backend(pair) == dist.get_backend()
part = dist.split_group(split_ranks=[[0, 1], list(range(2, size))][:2 if size > 2 else 1])
dist.barrier(part)
dist.destroy_process_group(part)
over_tcp = dist.new_group(backend="gloo")
x = torch.ones(2)
dist.all_reduce(x, group=over_tcp)
assert x[0] == size
from flambeau.distributed.nn import functional as F
leaf = torch.full((2,), float(rank + 1), requires_grad=True)
(F.all_reduce(leaf) * (rank + 1)).sum().backward()
assert leaf.grad.tolist() == [size * (size + 1) / 2] * 2
dist.destroy_process_group()
url += "again"
start()                                     # the same processes, in another order
dist.barrier()
dist.destroy_process_group()
"""


@needs_mpi
@pytest.mark.parametrize(("program", "size"), [(COLLECTIVES, 2), (COLLECTIVES, 3), (MESSAGES, 2),
                                               (MESSAGES, 3)])
def test_collectives(job, program, size):
    before = set(glob.glob("/dev/shm/mpich_shm_*"))
    said, codes = job(program, size=size, backend="mpi" if size == 2 else None)
    assert codes == [0] * size
    if program is COLLECTIVES:
        named, config = said[0][0]
        assert named == ("mpi" if size == 2 else "undefined") and config.startswith("cpu:mpi")
    left = set(glob.glob("/dev/shm/mpich_shm_*")) - before
    assert not [path for path in left if os.stat(path).st_uid == os.geteuid()]


def test_machines_of_ranks():
    assert process_mapping(["a"] * 4) == "(vector,(0,1,4))"


def test_without_mpi(monkeypatch):
    from flambeau.distributed._c10d.backends.mpi import library
    monkeypatch.setattr("flambeau.distributed._c10d.groups.is_mpi_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"doesn't have MPI built in.*flambeau\[mpi\]"):
        dist.init_process_group("mpi", store=dist.HashStore(), rank=0, world_size=1)
    assert dist.is_backend_available("mpi") is library.is_installed()
