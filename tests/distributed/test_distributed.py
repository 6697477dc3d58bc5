"""The package itself: its names, and the debugger of one process."""
from __future__ import annotations

import pdb
import subprocess
import sys

import pytest

from flambeau import distributed as dist


def test_names_of_its_modules():
    assert dist.is_available() and dist.nn.functional.all_reduce
    assert dist.device_mesh.init_device_mesh is dist.init_device_mesh
    assert dist.group.WORLD is None and dist.default_pg_timeout.total_seconds() == 1800
    assert not hasattr(dist, "of_nobody") and not hasattr(dist.nn, "of_nobody")


def test_what_comes_late():
    """Sub-packages are imported when they are asked for."""
    program = ("import sys, flambeau.distributed as d\n"
               "late = ['flambeau.distributed.' + n for n in ('fsdp', 'rpc', 'checkpoint')]\n"
               "assert not any(name in sys.modules for name in late)\n"
               "d.rpc; assert late[1] in sys.modules")
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.fixture
def stops(monkeypatch):
    found = []
    monkeypatch.setattr(pdb.Pdb, "set_trace", lambda self, *args, **named: found.append(type(self)))
    return found


def test_a_stop_in_one_process(alone, stops):
    dist.breakpoint()
    dist.breakpoint(rank=1)
    assert [kind.__name__ for kind in stops] == ["_DistributedPdb"]


def test_stops_that_are_skipped(alone, stops):
    for _ in range(4):
        dist.breakpoint(skip=3)
    assert len(stops) == 1
