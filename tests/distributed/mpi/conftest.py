"""Processes that start MPI: each test has its own, as MPI can be initialized once in a process."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HEAD = """
import sys, json, os, signal, time
from datetime import timedelta
import flambeau as torch
from flambeau import distributed as dist
import pytest
url, rank, size, seconds, backend = json.loads(sys.argv[1])
def say(value): print("SAID " + json.dumps(value), flush=True)
def start(**more):
    dist.init_process_group(backend, init_method=url, rank=rank, world_size=size,
                            timeout=timedelta(seconds=seconds), **more)
start()
"""


class Job:
    """The processes of a program, and what they have said."""

    def __init__(self, program, url, size, seconds, backend):
        text = HEAD + textwrap.dedent(program)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(
            [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
        for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            environment.pop(name, None)
        self.processes = [subprocess.Popen(
            [sys.executable, "-c", text, json.dumps([url, rank, size, seconds, backend])],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in range(size)]

    def finish(self, limit=120):
        """What each process has said, and its exit status; prints what they have written."""
        said, codes = [], []
        try:
            for rank, process in enumerate(self.processes):
                out, err = process.communicate(timeout=limit)
                if err:
                    print(f"--- rank {rank}\n{err}")
                said.append([json.loads(line[5:]) for line in out.splitlines()
                             if line.startswith("SAID ")])
                codes.append(process.returncode)
        finally:
            self.stop()
        return said, codes

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


@pytest.fixture
def job(tmp_path):
    """`job(program, size=2)`: what the processes of a program say, and how they end."""
    jobs = []

    def run(program, size=2, seconds=60, backend="mpi", wait=True):
        jobs.append(Job(program, f"file://{tmp_path}/store{len(jobs)}", size, seconds, backend))
        return jobs[-1].finish() if wait else jobs[-1]
    yield run
    for made in jobs:
        made.stop()
