"""What an agent knows of its workers."""
from __future__ import annotations

import functools
import json

import pytest

from flambeau.distributed.elastic.agent.server import (
    RunResult,
    Worker,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)
from flambeau.distributed.elastic.agent.server.api import _RoleInstanceInfo


def spec(**options):
    return WorkerSpec(**{"role": "trainer", "local_world_size": 2, "rdzv_handler": None,
                         "entrypoint": "/usr/bin/python", **options})


def test_specs():
    assert spec().get_entrypoint_name() == "python"
    assert spec(entrypoint=test_specs).get_entrypoint_name() == "test_specs"
    with pytest.warns(DeprecationWarning, match="please use WorkerSpec.entrypoint instead"):
        assert spec(entrypoint=None, fn=len).get_entrypoint_name() == "len"
    found = spec()
    assert (found.max_restarts, found.monitor_interval, found.event_log_handler) == (
        3, 0.1, "null")
    for options in ({"local_world_size": 0}, {"monitor_interval": 0}, {"entrypoint": None}):
        with pytest.raises(AssertionError):
            spec(**options)


def test_groups():
    group = WorkerGroup(spec())
    assert [worker.local_rank for worker in group.workers] == [0, 1]
    assert group.state is WorkerState.INIT and group.store is group.group_rank is None
    assert str(group.workers[1]) == repr(group.workers[1]) == (
        "local_rank=1,global_rank=-1,role_rank=-1,world_size=-1,role_world_size=-1")
    assert group.workers[0].id is None


def test_states():
    assert [state for state in WorkerState if WorkerState.is_running(state)] == [
        WorkerState.HEALTHY, WorkerState.UNHEALTHY]
    assert WorkerState.FAILED == "FAILED" and str(WorkerState.FAILED) == "WorkerState.FAILED"
    assert RunResult(WorkerState.FAILED).is_failed()
    assert not RunResult(WorkerState.UNHEALTHY).is_failed()
    assert RunResult(WorkerState.SUCCEEDED) == RunResult(WorkerState.SUCCEEDED, {}, {})


def test_roles_travel_as_json():
    info = _RoleInstanceInfo("trainer", 1, 4)
    assert json.loads(info.serialize()) == {"role": "trainer", "rank": 1, "local_world_size": 4}
    again = _RoleInstanceInfo.deserialize(info.serialize())
    assert (again.role, again.rank, again.local_world_size) == ("trainer", 1, 4)


def test_roles_are_sorted():
    infos = [_RoleInstanceInfo(*about, 1) for about in (("b", 0), ("a", 3), ("b", 2), ("a", 1))]
    infos.sort(key=functools.cmp_to_key(_RoleInstanceInfo.compare))
    assert [(info.role, info.rank) for info in infos] == [("a", 1), ("a", 3), ("b", 0), ("b", 2)]
    assert _RoleInstanceInfo.find_role_boundaries(infos, "b") == (2, 3)
    assert _RoleInstanceInfo.find_role_boundaries(infos, "c") == (-1, -1)
    compare = _RoleInstanceInfo.compare
    assert [compare(infos[0], infos[i]) for i in (0, 1, 2)] == [0, -2, -1]
    assert compare(infos[3], infos[0]) == 1


@pytest.mark.parametrize(("group", "ranks"), [
    (0, [(0, 0), (1, 1)]), (1, [(2, 0)]), (2, [(3, 2), (4, 3), (5, 4)])])
def test_ranks(group, ranks):
    from flambeau.distributed.elastic.agent.server.workers import assign_worker_ranks
    infos = [_RoleInstanceInfo("trainer", 2, 3), _RoleInstanceInfo("trainer", 0, 2),
             _RoleInstanceInfo("reader", 1, 1)]
    workers = assign_worker_ranks(infos, group)
    assert [(worker.global_rank, worker.role_rank) for worker in workers] == ranks
    assert {worker.world_size for worker in workers} == {6}
    assert {worker.role_world_size for worker in workers} == {1 if group == 1 else 5}
    assert all(type(worker) is Worker for worker in workers)
