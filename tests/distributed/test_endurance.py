"""Many collectives, and processes that are killed and started again: nothing is left behind."""
from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
import time

import pytest

from flambeau import distributed as dist

BACKENDS = ["gloo", pytest.param("mpi", marks=pytest.mark.skipif(
    not dist.is_mpi_available(), reason="mpi4py or MPICH is missing"))]

MANY = """
import gc, threading
x = torch.ones(1)
def used():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
def some(n):
    for i in range(n):
        dist.all_reduce(x.fill_(1))
        dist.all_reduce(torch.ones(3), async_op=True).get_future().wait()
        if i % 10 == 0:
            dist.barrier()
            dist.broadcast(x, 0)
some(300)
before, threads = used(), threading.active_count()
some(1000)
say([used() - before, threading.active_count() - threads])
dist.barrier()
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")
@pytest.mark.parametrize("backend", BACKENDS)
def test_collectives_keep_nothing(job, backend):
    said, codes = job(MANY, backend=backend)
    assert codes == [0, 0]
    for bytes_more, threads_more in (answers[0] for answers in said):
        assert bytes_more < 1 << 20 and threads_more <= 0


TRAINING = """
import json, os, signal, sys
from datetime import timedelta
import flambeau as torch
from flambeau import distributed as dist
folder, deaths = sys.argv[1], json.loads(sys.argv[2])
dist.init_process_group(sys.argv[3], timeout=timedelta(seconds=60))
rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
with open(f"{folder}/pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
shared = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), 0.01)
path, begin = f"{folder}/state", 0
if os.path.exists(path):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    begin = state["step"]
for step in range(begin, 8):
    optimizer.zero_grad()
    shared(torch.full((2, 4), step + rank / 2)).square().mean().backward()
    if attempt < len(deaths) and deaths[attempt] == [rank, step]:
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.step()
    if rank == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "step": step + 1}, path + ".new")
        os.replace(path + ".new", path)
    dist.barrier()
if rank == 0:
    print(json.dumps([p.tolist() for p in model.parameters()]))
dist.destroy_process_group()
"""


def trained(folder, backend, deaths):
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(TRAINING)
    done = subprocess.run(
        [sys.executable, "-m", "flambeau.distributed.run", "--nproc-per-node", "2",
         "--max-restarts", "3", "--monitor-interval", "0.05", str(program), str(folder),
         json.dumps(deaths), backend], capture_output=True, text=True, timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)})
    assert done.returncode == 0, done.stderr
    pids = [int(line) for line in (folder / "pids").read_text().split()]
    assert len(pids) == 2 * (len(deaths) + 1)
    return done.stdout.splitlines()[-1], pids


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("backend", BACKENDS)
def test_killed_processes_leave_nothing_and_change_nothing(backend, tmp_path):
    before = set(glob.glob("/dev/shm/*"))
    weights, calm = trained(tmp_path / "calm", backend, [])
    again, wild = trained(tmp_path / "wild", backend, [[1, 2], [0, 5]])
    assert again == weights
    end = time.monotonic() + 5              # the agent has waited for them: they are gone
    while any(map(_runs, calm + wild)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in calm + wild if _runs(pid)]
    left = [path for path in set(glob.glob("/dev/shm/*")) - before
            if os.stat(path).st_uid == os.geteuid() and "mpich" in path]
    assert left == []
