"""Groups of processes: of this one alone, and of workers that all tests share."""
from __future__ import annotations

import multiprocessing
import sys
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
