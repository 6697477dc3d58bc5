"""What an agent knows of its workers."""
from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from flambeau.distributed.elastic.multiprocessing.errors import ProcessFailure
from flambeau.distributed.elastic.rendezvous.api import RendezvousHandler
from flambeau.numa.binding import NumaOptions


@dataclass
class WorkerSpec:
    """What the workers of a machine are to do.

    Args:
        role: their role.
        local_world_size: how many there are on this machine.
        rdzv_handler: this machine's part in the rendezvous.
        entrypoint: a function or a program.
        args: its arguments.
        max_restarts: how often all are started again after a failure.
        monitor_interval: seconds between looks at them.
        master_port: where rank 0 holds its store; by default where the rendezvous says.
        master_addr: the address of that store.
        local_addr: the address of this machine.
        event_log_handler: where events are written.
        numa_options: binds them to processors.
        duplicate_stdout_filters: lines that contain one of these go to a file, too.
        duplicate_stderr_filters: the same for stderr.
        virtual_local_rank: each worker sees one GPU, and is local rank 0.
    """

    role: str
    local_world_size: int
    rdzv_handler: RendezvousHandler
    fn: Callable[..., Any] | None = None
    entrypoint: Callable[..., Any] | str | None = None
    args: tuple[Any, ...] = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: int | None = None
    master_addr: str | None = None
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: NumaOptions | None = None
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False

    def __post_init__(self) -> None:
        assert self.local_world_size > 0
        assert self.monitor_interval > 0
        if self.fn:                 # the older name of `entrypoint`
            warnings.warn("WorkerSpec.fn will be deprecated, please use WorkerSpec.entrypoint "
                          "instead", DeprecationWarning, stacklevel=3)
            self.entrypoint = self.fn
        assert self.entrypoint

    def get_entrypoint_name(self) -> str:
        """The name of the function or program."""
        if isinstance(self.entrypoint, str):
            return os.path.basename(self.entrypoint)
        return self.entrypoint.__qualname__


class Worker:
    """A worker: its ranks, and its id once it is started."""

    __slots__ = ["global_rank", "id", "local_rank", "role_rank", "role_world_size", "world_size"]

    def __init__(self, local_rank: int, global_rank: int = -1, role_rank: int = -1,
                 world_size: int = -1, role_world_size: int = -1):
        self.id: Any = None
        self.local_rank, self.global_rank, self.role_rank = local_rank, global_rank, role_rank
        self.world_size, self.role_world_size = world_size, role_world_size

    def __str__(self) -> str:
        return (f"local_rank={self.local_rank},global_rank={self.global_rank},"
                f"role_rank={self.role_rank},world_size={self.world_size},"
                f"role_world_size={self.role_world_size}")

    __repr__ = __str__


class WorkerState(str, Enum):        # noqa: UP042 - prints as an Enum does
    """How it stands with workers, all together: they change state as one."""

    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state: WorkerState) -> bool:
        """Do workers run in that state?"""
        return state in {WorkerState.HEALTHY, WorkerState.UNHEALTHY}


class WorkerGroup:
    """The workers of a machine."""

    __slots__ = ["group_rank", "group_world_size", "master_addr", "master_port", "spec", "state",
                 "store", "workers"]

    def __init__(self, spec: WorkerSpec):
        self.spec = spec
        self.workers = [Worker(local_rank=i) for i in range(spec.local_world_size)]
        self.state = WorkerState.INIT
        self.store: Any = None
        self.group_rank: int | None = None
        self.group_world_size: int | None = None
        self.master_addr: str | None = None
        self.master_port: int | None = None


@dataclass
class RunResult:
    """How the workers have ended: what functions gave, and failures, by rank."""

    state: WorkerState
    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Have they failed?"""
        return self.state == WorkerState.FAILED


class _RoleInstanceInfo:
    """What an agent tells the others: its role, its rank, and how many workers it has."""

    __slots__ = ["local_world_size", "rank", "role"]

    def __init__(self, role: str, rank: int, local_world_size: int):
        self.role, self.rank, self.local_world_size = role, rank, local_world_size

    def serialize(self) -> bytes:
        """As JSON."""
        return json.dumps({"role": self.role, "rank": self.rank,
                           "local_world_size": self.local_world_size}).encode()

    @staticmethod
    def deserialize(data: bytes) -> _RoleInstanceInfo:
        """What `serialize` wrote."""
        return _RoleInstanceInfo(**json.loads(data))

    @staticmethod
    def compare(obj1: _RoleInstanceInfo, obj2: _RoleInstanceInfo) -> int:
        """Negative, 0 or positive: sorts by role, then by rank."""
        if obj1.role == obj2.role:
            return obj1.rank - obj2.rank
        return 1 if obj1.role > obj2.role else -1

    @staticmethod
    def find_role_boundaries(roles_infos: list[_RoleInstanceInfo], role: str) -> tuple[int, int]:
        """The first and the last place of a role; (-1, -1) without any."""
        places = [i for i, info in enumerate(roles_infos) if info.role == role]
        return (places[0], places[-1]) if places else (-1, -1)


def assign_worker_ranks(infos: list[_RoleInstanceInfo], group_rank: int) -> list[Worker]:
    """The workers of the agent `group_rank`: all workers of all agents are numbered in the order
    of the agents, and again within each role.

    >>> assign_worker_ranks([_RoleInstanceInfo("trainer", 0, 2),
    ...                      _RoleInstanceInfo("trainer", 1, 1)], group_rank=1)
    [local_rank=0,global_rank=2,role_rank=2,world_size=3,role_world_size=3]
    """
    infos = sorted(infos, key=lambda info: info.rank)
    mine = infos[group_rank]

    def count(chosen: list[_RoleInstanceInfo]) -> int:
        return sum(info.local_world_size for info in chosen)
    before, peers = infos[:group_rank], [info for info in infos if info.role == mine.role]
    start, role_start = count(before), count([i for i in before if i.role == mine.role])
    return [Worker(local_rank=i, global_rank=start + i, role_rank=role_start + i,
                   world_size=count(infos), role_world_size=count(peers))
            for i in range(mine.local_world_size)]
