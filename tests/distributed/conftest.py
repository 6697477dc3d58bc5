"""Groups of processes: of this one alone, of workers that all tests share, and jobs whose processes
are their own."""
from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import traceback
from datetime import timedelta
from pathlib import Path

import pytest

from flambeau import distributed as dist

ROOT = str(Path(__file__).parents[2])       # where new processes find tests as modules


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def serve(connection):
    """A worker: run what it is sent, in a group with the others, until nobody sends more."""
    while True:
        try:
            check, args, url, rank, size = connection.recv()
        except EOFError:
            return
        error = None
        try:
            if url is not None:
                dist.init_process_group("gloo", init_method=url, rank=rank, world_size=size,
                                        timeout=timedelta(seconds=30))
            check(rank, *args)
            if dist.is_initialized():
                dist.barrier()
        except BaseException:
            error = traceback.format_exc()
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
        connection.send(error)


class Workers:
    """Processes that stay for all tests, as starting one takes a second."""

    def __init__(self):
        self.workers = []

    def start(self, count):
        context = multiprocessing.get_context("spawn")
        if ROOT not in sys.path:
            sys.path.append(ROOT)
        while len(self.workers) < count:
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            self.workers.append((process, ours))

    def run(self, check, args, url, size):
        self.start(size)
        workers = self.workers[:size]
        for rank, (_, connection) in enumerate(workers):
            connection.send((check, args, url, rank, size))
        errors = []
        for rank, (_, connection) in enumerate(workers):
            try:
                arrived = connection.poll(60)
                error = connection.recv() if arrived else "no answer in 60 seconds"
            except EOFError:
                error = "the process has ended"
            if error is not None:
                errors.append(f"process {rank}: {error}")
        if errors:
            self.stop()                     # they may wait for each other still
            pytest.fail("\n".join(errors), pytrace=False)

    def stop(self):
        for process, connection in self.workers:
            connection.close()
            process.kill()
            process.join()
        self.workers = []


@pytest.fixture(scope="session")
def workers():
    found = Workers()
    yield found
    found.stop()


@pytest.fixture
def processes(workers, tmp_path):
    """`processes(check, *args, size=2)`: `check(rank, *args)` in each process of a group; without a
    group, `group=False`."""
    count = 0

    def run(check, *args, size=2, group=True):
        nonlocal count
        count += 1
        workers.run(check, args, f"file://{tmp_path}/store{count}" if group else None, size)
    return run


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
            [ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])}
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
