"""Backends: what they refuse, and those of users."""
from __future__ import annotations

from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau._C import _distributed_c10d as c


class Twice(c.Backend):
    """A backend of the user's: doubles instead of adding up."""

    def getBackendName(self):
        return "twice"

    def allreduce(self, tensors, opts=None):
        for tensor in tensors:
            tensor.mul_(2)
        return dist.Work(tensors)


def test_backends_of_users():
    dist.Backend.register_backend("twice", lambda store, rank, size, timeout: Twice(rank, size),
                                  devices=["cpu"])
    dist.init_process_group("twice", store=dist.HashStore(), rank=0, world_size=2)
    try:
        x = torch.ones(2)
        dist.all_reduce(x)
        assert x.tolist() == [2.0, 2.0] and dist.get_backend() == "twice"
        assert dist.group.WORLD._get_backend_name() == "twice"
        with pytest.raises(RuntimeError, match="Backend twice does not support broadcast"):
            dist.broadcast(x, 0)
    finally:
        dist.destroy_process_group()


def test_what_a_backend_does_not_offer():
    backend = c.Backend(1, 4)
    assert (backend.rank(), backend.size()) == (1, 4)
    for name in ("supports_splitting", "supports_coalescing", "supports_time_estimate"):
        assert getattr(backend, name) is False
    x = torch.ones(2)
    for call, name in ((lambda: backend.allreduce(x), "allreduce"),
                       (lambda: backend.send([x], 0, 0), "send"),
                       (lambda: backend.recv_anysource([x], 0), "recvAnysource"),
                       (backend.monitored_barrier, "monitoredBarrier")):
        with pytest.raises(RuntimeError, match=f"Backend .* does not support {name}"):
            call()


def test_numbers_and_limits():
    backend = Twice(0, 1)
    backend.set_timeout(timedelta(seconds=2))
    assert backend.name() == "twice" and backend.options._timeout == timedelta(seconds=2)
    assert backend._timeout_of(dist.AllreduceOptions()) == timedelta(seconds=2)
    options = dist.AllreduceOptions()
    options.timeout = timedelta(seconds=1)
    assert backend._timeout_of(options) == timedelta(seconds=1)
    assert not backend.supports_tensor_alloc("cpu")
    with pytest.raises(RuntimeError, match="Backend twice does not support allocateTensor"):
        backend.allocate_tensor(3, dtype=torch.float32, device="cpu")
