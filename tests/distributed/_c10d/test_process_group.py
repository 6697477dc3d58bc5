"""Groups of processes: their names, their backends, and those of users."""
from __future__ import annotations

from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist


class Group(dist.ProcessGroup):
    """A group of the user's, which runs its collectives itself."""

    def getBackendName(self):
        return "own"

    def allreduce(self, tensors, opts=None):
        tensors[0].fill_(5)
        return dist.Work(tensors)


def test_groups_of_users():
    x = torch.ones(2)
    group = Group(0, 2)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [5.0, 5.0] and group.name() == "own" and group.size() == 2


def test_a_group_without_backends():
    group = dist.ProcessGroup(0, 2)
    assert (group.rank(), group.size(), group.name()) == (0, 2, "undefined")
    assert group.get_group_store() is None and group._device_types == []
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        group.allreduce([torch.ones(1)])


def test_kinds_of_backends():
    kinds = dist.ProcessGroup.BackendType
    assert (int(kinds.GLOO), int(kinds.CUSTOM)) == (1, 6)
    assert repr(kinds.GLOO) == "<BackendType.GLOO: 1>" and str(kinds.MPI) == "BackendType.MPI"
    assert dist.ProcessGroup.NCCL == kinds.NCCL


def test_a_group_of_gloo(alone):
    group = dist.group.WORLD
    assert group.name() == group._get_backend_name() == "gloo"
    assert sorted(d.type for d in group._device_types) == ["cpu", "cuda"]
    assert isinstance(group.get_group_store(), dist.Store) and group.bound_device_id is None
    backend = group._get_backend(torch.device("cpu"))
    assert backend.supports_splitting and not backend.supports_coalescing
    assert (backend.name(), backend.options.backend, backend.options.group_name) == (
        "gloo", "gloo", "0")
    before = group._get_sequence_number_for_group()
    dist.all_reduce(torch.ones(1))
    assert group._get_sequence_number_for_group() == before + 1
    group._set_group_desc("other")
    assert group.group_desc == "other"
    assert not group._has_hooks()
    for call in (lambda: group._register_on_completion_hook(print), group._wait_for_pending_works):
        with pytest.raises(RuntimeError, match=r"Only .*NCCL supports .*, but got gloo"):
            call()


def test_the_limit_of_a_group(alone):
    group = dist.group.WORLD
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=5), group)
    backend = group._get_backend(torch.device("cpu"))
    assert backend.options._timeout == timedelta(seconds=5)
    with pytest.raises(TypeError):
        dist.distributed_c10d._set_pg_timeout(3, group)
