"""Processes that call different collectives, or go, or stand still: each backend says so."""
from __future__ import annotations

import json

import pytest

from flambeau import distributed as dist

BACKENDS = ["gloo", pytest.param("mpi", marks=pytest.mark.skipif(
    not dist.is_mpi_available(), reason="mpi4py or MPICH is missing"))]

MISMATCHES = """
def both(first, second):
    try:
        (second if rank else first)()
    except RuntimeError as error:
        say(str(error))
        return
    say("nothing")
both(lambda: dist.all_reduce(torch.ones(4)), lambda: dist.all_reduce(torch.ones(2)))
both(lambda: dist.all_reduce(torch.ones(2, 3)), lambda: dist.all_reduce(torch.ones(3, 2)))
both(lambda: dist.all_reduce(torch.ones(2)), lambda: dist.all_reduce(torch.ones(2).int()))
both(lambda: dist.all_reduce(torch.ones(2)), lambda: dist.broadcast(torch.ones(2), 0))
both(lambda: dist.all_reduce(torch.ones(2)),
     lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.MAX))
both(lambda: dist.broadcast(torch.ones(2), 0), lambda: dist.broadcast(torch.ones(2), 1))
both(lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), [2, 2], [1, 3]),
     lambda: dist.all_to_all_single(torch.ones(5), torch.ones(5), [2, 3], [2, 3]))
both(lambda: dist.barrier(), lambda: dist.all_reduce(torch.ones(2)))
x = torch.arange(4.0) if rank == 0 else torch.zeros(2, 2)
dist.broadcast(x, 0)                        # flat here, with two dimensions there: as in PyTorch
assert x.flatten().tolist() == [0.0, 1.0, 2.0, 3.0]
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_mismatches_raise_in_all_processes(job, backend):
    said, codes = job(MISMATCHES, seconds=30, backend=backend)
    assert codes == [0, 0] and said[0] == said[1] and len(said[0]) == 8
    for message, words in zip(said[0], (
            ("Tensor shapes: [[4]] vs [[2]]", "allreduce(float32[4], SUM) #1 at <string>:"),
            ("Tensor shapes: [[2, 3]] vs [[3, 2]]",), ("float32", "int32"),
            ("allreduce", "broadcast"), ("SUM vs MAX",), ("root 0 vs root 1",),
            ("elements to rank", "in alltoall, which expects 2"), ("barrier",))):
        assert message.startswith("Detected mismatch between collectives on ranks. Rank 0")
        assert all(word in message for word in words), message


LONG_MISMATCHES = """
def attempt(call):
    try:
        call()
        say("nothing")
    except RuntimeError as error:
        say(str(error))
def many(other, **options):                 # more than fits into a message
    tensors = [torch.ones(4, dtype=other.dtype) for _ in range(400)]
    tensors[200] = other
    tensors[100] = tensors[100].view(2, 2) if rank else tensors[100]    # this one fits
    return lambda: dist.all_reduce_coalesced(tensors, **options)
x = torch.ones(4)
attempt(many(torch.ones(7) if rank else x))
attempt(many(x.int() if rank else x))
attempt(many(x, op=dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM))
attempt(lambda: dist.all_reduce_coalesced([torch.ones(1) for _ in range(400 + rank)]))
attempt(lambda: exec(compile("dist.all_reduce(torch.ones(2 + rank))", "/x" * 1500 + ".py", "exec")))
tensors = [torch.ones(4) if rank else torch.ones(2, 2) for _ in range(400)]
dist.all_reduce_coalesced(tensors)
assert all(t.flatten().tolist() == [2.0] * 4 for t in tensors)
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_mismatches_of_long_calls_raise_in_all_processes(job, backend):
    said, codes = job(LONG_MISMATCHES, seconds=30, backend=backend)
    assert codes == [0, 0] and said[0] == said[1] and len(said[0]) == 5
    for message, words in zip(said[0], (
            ("Tensor shapes: [4] vs [7] of tensor 200", "… 400 tensors, SUM) #1 at <string>:"),
            ("Tensor dtypes: torch.float32 vs torch.int32 of tensor 0",),
            ("Reduction or root: SUM vs MAX",), ("Tensor shapes: 400 vs 401 tensors",),
            ("Tensor shapes: [[2]] vs [[3]]", " at …", "/x/x.py:1"))):
        assert message.startswith("Detected mismatch between collectives on ranks. Rank 0")
        assert all(word in message for word in words) and len(message) < 1500, message


REFUSALS = """
def attempt(call):
    begun = time.monotonic()
    try:
        call()
        say(["nothing", 0])
    except Exception as error:
        say([str(error), time.monotonic() - begun])
x = torch.ones(2)
for wrong in range(2):                      # all processes refuse, and go on as they like
    attempt(lambda: dist.all_reduce(3))
    if rank:
        time.sleep(1.3)
    dist.all_reduce(x)
if rank:                                    # one refuses, and goes on at once
    attempt(lambda: dist.broadcast(x, 7))
dist.all_reduce(x)
if rank < 2:                                # a small message that does not fit
    if rank:
        attempt(lambda: dist.recv(torch.ones(2).int(), 0))
    else:
        dist.send(torch.ones(4), 1)
        time.sleep(0.5)
        attempt(dist.barrier)
dist.barrier()
attempt(lambda: dist.all_gather([torch.ones(2)] * (size - rank), x))
time.sleep(2)
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_refused_call_is_known_to_the_others(job, backend):
    said, codes = job(REFUSALS, seconds=30, backend=backend)
    assert codes == [0, 0]
    (own, _), (also, _), (misfit, _), (waited, seconds) = said[0]
    assert own == also and own.startswith("Invalid function argument")
    assert [text for text, _ in said[1][:2]] == [own, own]
    assert "invalid root rank: 7" in said[1][2][0]
    assert misfit == said[1][3][0] and "torch.float32 [4], but rank 1 at <string>:" in misfit
    assert "rank 1 has refused its call of all_gather at <string>:" in waited
    assert said[1][4][0] in waited and 0.9 < seconds < 2


FAULTS = """
dist.all_reduce(torch.ones(1))
begun = time.monotonic()
def attempt(call):
    try:
        call()
        say(["nothing", 0])
    except RuntimeError as error:
        say([str(error), time.monotonic() - begun])
if case == "killed" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
elif case == "stopped" and rank == 1:
    say(os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)
elif case == "raised" and rank == 1:
    raise ValueError("mine")
elif case == "late" and rank == 1:
    time.sleep(60)                          # until the test ends it: rank 0 may be slow itself
elif case != "left" or rank == 0:
    if case == "left":
        time.sleep(0.5)                     # what rank 1 has sent is there, though it has gone
        y = torch.zeros(3)
        dist.recv(y, 1)
        assert y[0] == 5
    attempt(lambda: dist.all_reduce(torch.ones(1000)))
    attempt(lambda: dist.all_reduce(torch.ones(1000)))
else:
    dist.send(torch.full((3,), 5.0), 0)
"""


GONE = {"mpi": "Connection closed by peer [rank 1]: rank 1 went during allreduce",
        "gloo": "Connection closed by peer [rank 1]"}
NOT_COME = "rank 1 has not come to allreduce(float32[1000], SUM)"


@pytest.mark.parametrize(("case", "words", "limit"), [
    ("killed", GONE, 2.0), ("raised", GONE, 2.0), ("left", GONE, 2.0),
    ("late", {"mpi": "complete; rank 1 has last called allreduce(float32[1]", "gloo": NOT_COME},
     4.0),
    ("stopped", {"mpi": "complete; rank 1 does not answer: it may be stopped", "gloo": NOT_COME},
     4.0)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_processes_that_have_gone_or_stand_still_are_named(job, case, words, limit, backend):
    made = job(f"case = {case!r}\n" + FAULTS, seconds=3, backend=backend, wait=False)
    out, _ = made.processes[0].communicate(timeout=60)
    made.stop()
    first, second = [line[5:] for line in out.splitlines() if line.startswith("SAID ")]
    assert words[backend] in first and (backend == "gloo" or "has failed before" in second)
    assert float(first.rsplit(",", 1)[1].strip(" ]")) < limit + 3


QUEUED = """
dist.barrier()
if rank:
    time.sleep(0.2)
    if case == "late":
        time.sleep(60)                      # until the test ends it
    os.kill(os.getpid(), signal.SIGKILL)
works = [dist.all_reduce(torch.ones(2), async_op=True) for _ in range(1200)]
begun = time.monotonic()
def outcome(work):
    try:
        work.wait()
    except RuntimeError as error:
        return str(error)
say([list(map(outcome, works)), time.monotonic() - begun])
os._exit(0)
"""


@pytest.mark.parametrize(("case", "words", "limit"), [
    ("killed", "Connection closed by peer [rank 1]", 20), ("late", "Timed out waiting 3000ms", 3)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_all_that_is_queued_behind_a_failure_fails_at_once(job, case, words, limit, backend):
    made = job(f"case = {case!r}\n" + QUEUED, seconds=limit, backend=backend, wait=False)
    out, _ = made.processes[0].communicate(timeout=60)
    made.stop()
    outcomes, seconds = json.loads(out.split("SAID ")[1])
    assert len(outcomes) == 1200 and seconds < 10
    assert all(words in text for text in outcomes)


SLOW_RECEIVER = """
import resource
if rank == 0:
    works = [dist.isend(torch.full((1 << 20,), float(i)), 1) for i in range(20)]
    for work in works:
        work.wait()
else:
    time.sleep(0.5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    y = torch.empty(1 << 20)
    found = []
    for _ in range(20):
        dist.recv(y, 0)
        found.append(y[-1].item())
    assert found == list(range(20))
    say(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
dist.barrier()
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_messages_do_not_pile_up_at_a_slow_receiver(job, backend):
    said, codes = job(SLOW_RECEIVER, backend=backend)
    assert codes == [0, 0] and said[1][0] < 40_000          # kB; all messages have 80,000


def test_a_peer_that_does_not_read_times_out(job):
    made = job("""
        if rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.5)
        begun = time.monotonic()
        peers = dist.group.WORLD._get_backend("cpu").peers
        with pytest.raises(RuntimeError, match="for rank 1 to take a message: it may be stopped"):
            peers.send(1, b"key", bytes(1 << 24), 1.0)
        say(time.monotonic() - begun)
        """, backend="gloo", wait=False)
    out, _ = made.processes[0].communicate(timeout=60)
    made.stop()
    assert 0.9 < float(out.split("SAID ")[1]) < 5


def test_group_again_at_the_same_address(job):
    _, codes = job("""
        import socket
        if rank == 0:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = torch.tensor([free.getsockname()[1]])
        else:
            port = torch.tensor([0])
        dist.broadcast(port, 0)
        dist.destroy_process_group()
        for _ in range(3):
            url = f"tcp://127.0.0.1:{int(port)}"
            start()
            x = torch.ones(1)
            dist.all_reduce(x)
            assert x.item() == 2
            dist.barrier()
            dist.destroy_process_group()
        """, backend="gloo")
    assert codes == [0, 0]
