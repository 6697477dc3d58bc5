"""A backend that compares the calls of all processes."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import distributed_c10d as c10d


def compared_calls(rank):
    store = c10d._get_default_store()
    inner = dist.ProcessGroupGloo(dist.PrefixStore("inner", store), rank, 2)
    group = c10d._create_process_group_wrapper(inner, "helper", store, rank, 2)
    y = torch.ones(2)
    group.allreduce([y]).wait()
    assert y.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="Detected mismatch between collectives on ranks"):
        group.allreduce([torch.ones(2 + rank)])
    with pytest.raises(RuntimeError, match="OpType=BROADCAST"):
        group.allreduce(y) if rank else group.broadcast(y, 0)


def test_two_processes(processes):
    processes(compared_calls)
