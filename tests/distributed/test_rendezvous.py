"""Processes that are started in all ways that there are, and find each other; what Slurm says."""
from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from flambeau.distributed.elastic.utils.distributed import get_free_port

PROGRAM = """
import json, os, sys
import flambeau as torch
from flambeau import distributed as dist
from flambeau import multiprocessing as mp

def work(rank, options):
    dist.init_process_group(**options)
    x = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(x)
    print(f"SAID {dist.get_rank()} of {dist.get_world_size()}: {x.item()}\\n", end="", flush=True)
    dist.destroy_process_group()

def spawned(rank, options):
    work(rank, {**options, "rank": rank})

if __name__ == "__main__":
    how, options = json.loads(sys.argv[1])
    if how == "spawn":
        mp.spawn(spawned, (options,), nprocs=2)
    else:
        work(None, options)
"""

NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")
SLURM = {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "localhost"}


def start(program, how, options, environment, launcher=()):
    clean = {k: v for k, v in os.environ.items()
             if k not in NAMES and not k.startswith(("SLURM_", "TORCHELASTIC_"))}
    return subprocess.Popen(
        [sys.executable, *launcher, str(program), json.dumps([how, options])], text=True,
        env={**clean, "OMP_NUM_THREADS": "1", **environment}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)


def started(program, how, tmp_path):
    """The processes of the program, started in one way."""
    port = get_free_port()
    if how == "torchrun":
        return [start(program, how, {}, {"TMPDIR": str(tmp_path)}, (
            "-m", "flambeau.distributed.run", "--nproc-per-node", "2"))]
    if how == "flambeau run":
        return [start(program, how, {}, {"TMPDIR": str(tmp_path)}, (
            "-m", "flambeau", "run", "--nproc", "2"))]
    if how == "spawn":
        url = f"tcp://127.0.0.1:{port}"
        return [start(program, how, {"init_method": url, "world_size": 2}, {})]
    if how in ("tcp", "file"):
        url = f"tcp://127.0.0.1:{port}" if how == "tcp" else f"file://{tmp_path}/meeting"
        return [start(program, how, {"init_method": url, "rank": rank, "world_size": 2}, {})
                for rank in range(2)]
    if how == "env":
        return [start(program, how, {}, {
            "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(port)}) for rank in range(2)]
    return [start(program, how, {}, {**SLURM, "SLURM_PROCID": str(rank),
                                     "MASTER_PORT": str(port)}) for rank in range(2)]


@pytest.mark.parametrize("how", ["env", "tcp", "file", "slurm", "spawn", "torchrun",
                                 "flambeau run"])
def test_ways_to_start(how, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    jobs = started(program, how, tmp_path)
    try:
        found = [job.communicate(timeout=60) for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    assert all(job.returncode == 0 for job in jobs), found
    said = sorted(line for out, _ in found for line in out.splitlines() if "SAID" in line)
    assert said == ["SAID 0 of 2: 3.0", "SAID 1 of 2: 3.0"], found
