"""Process groups: how they are made, and who is in them.

The default group is all processes that have called `init_process_group`; others are made of some
of its members. Tensors travel over TCP, on connections that the processes make to each other.
"""
from __future__ import annotations

import enum
import os
from datetime import timedelta
from typing import Any

import flambeau
from flambeau.distributed._process_group import ProcessGroup
from flambeau.distributed._transport import Peers
from flambeau.distributed.constants import default_pg_timeout
from flambeau.distributed.rendezvous import rendezvous
from flambeau.distributed.stores import PrefixStore, Store


class RedOpType(enum.IntEnum):
    """What a reduction does."""
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"


class ReduceOp:
    """What `all_reduce` and its kind do with the values of all processes: `ReduceOp.SUM` …"""

    RedOpType = RedOpType

    def __init__(self, op: RedOpType):
        if not isinstance(op, RedOpType):
            raise TypeError("ReduceOp(): incompatible constructor arguments: expected a "
                            f"ReduceOp.RedOpType, got {op!r}")
        self.op = op

    def __eq__(self, other: Any) -> bool:
        return self.op == getattr(other, "op", other)

    def __hash__(self) -> int:
        return int(self.op)


for _op in RedOpType:
    setattr(ReduceOp, _op.name, _op)
reduce_op = ReduceOp


class Backend(str):
    """The name of a backend, in lower case. gloo is what flambeau has.

    >>> Backend("GLOO")
    'gloo'
    """
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, "fake"]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name: str) -> str:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return getattr(cls, name.upper(), None) or name.lower()


class BackendConfig:
    """Which backend serves which type of device."""

    def __init__(self, backend: str):
        self.device_backend_map = {"cpu": backend}

    def __repr__(self) -> str:
        return ",".join(f"{device}:{b}" for device, b in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """Types of devices to backends."""
        return self.device_backend_map


ProcessGroupGloo = ProcessGroup


class GroupMember:
    """The default group, and what stands for a group that this process is no member of."""
    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


group = GroupMember
_groups: dict[str, ProcessGroup] = {}
_made = 0                           # groups, those of others included


# ---- groups -------------------------------------------------------------------------------------

def is_available() -> bool:
    """True: the package is there."""
    return True


def is_initialized() -> bool:
    """Has `init_process_group` been called?"""
    return GroupMember.WORLD is not None


def is_gloo_available() -> bool:
    """True."""
    return True


def is_nccl_available() -> bool:
    """False: there is no CUDA."""
    return False


def is_mpi_available() -> bool:
    """False: flambeau is not built with MPI."""
    return False


def is_ucc_available() -> bool:
    """False: flambeau is not built with UCC."""
    return False


def is_xccl_available() -> bool:
    """False: there is no XPU."""
    return False


def is_backend_available(backend: str) -> bool:
    """Is this backend there? gloo is."""
    return backend.lower() == "gloo"


def is_torchelastic_launched() -> bool:
    """Was this process started by torchelastic?"""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


def _check_backend(backend: str | None) -> str:
    if backend is None:
        return Backend.GLOO
    if ":" in backend:
        backend = dict(part.split(":") for part in backend.split(","))["cpu"]
    backend = Backend(backend)
    assert backend in Backend.backend_list, f"Unknown backend type {backend}"
    if backend != Backend.GLOO:
        raise RuntimeError(f"Distributed package doesn't have {backend.upper()} built in")
    return backend


def init_process_group(backend: str | None = None, init_method: str | None = None,
                       timeout: timedelta | None = None, world_size: int = -1, rank: int = -1,
                       store: Store | None = None, group_name: str = "", pg_options: Any = None,
                       device_id: Any = None) -> None:
    """Make the default group: each of `world_size` processes calls this, with its own `rank`. They
    find each other through `init_method` (by default the environment's `MASTER_ADDR` and
    `MASTER_PORT`, which `torchrun` sets) or through a store.

    >>> from flambeau.distributed.stores import HashStore
    >>> init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    >>> get_rank(), get_world_size()
    (0, 1)
    >>> destroy_process_group()
    """
    global _made
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    backend = _check_backend(backend)
    timeout = default_pg_timeout if timeout is None else timeout
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size,
                                                  timeout=timeout))
        store.set_timeout(timeout)
    if not 0 <= rank < world_size:
        raise ValueError(f"init_process_group: rank {rank} in a group of {world_size}")
    store = PrefixStore("default_pg", store)
    GroupMember.WORLD = ProcessGroup(backend, store, "0", timeout, rank, list(range(world_size)),
                                     Peers(store, rank, world_size, timeout))
    _groups["0"] = GroupMember.WORLD
    _made = 1


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget a group; without argument, all of them."""
    world = GroupMember.WORLD
    if group is None or group is world:
        assert world is not None, "Process group cannot be None"
        for known in _groups.values():
            known.close()
        if world.peers is not None:
            world.peers.close()
        GroupMember.WORLD = None
        _groups.clear()
        return
    if _groups.pop(group.group_name, None) is None:
        raise ValueError("Invalid process group specified")
    group.close()


def _resolve(group: Any) -> ProcessGroup | None:
    """The group of a call; None if this process is not in it."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return None
    if group is not None:
        return group
    if GroupMember.WORLD is None:
        raise ValueError("Default process group has not been initialized, please make sure to "
                         "call init_process_group.")
    return GroupMember.WORLD


def only_alone(what: str, group: Any = None) -> None:
    """Refuse what is there for one process only."""
    if is_initialized() and get_world_size(group) > 1:
        raise NotImplementedError(f"{what} in a group of {get_world_size(group)} processes")


def _get_default_group() -> ProcessGroup:
    return _resolve(None)


def get_rank(group: Any = None) -> int:
    """The number of this process in a group; -1 if it is not in it."""
    found = _resolve(group)
    return -1 if found is None else found.rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes in a group; -1 if this one is not in it."""
    found = _resolve(group)
    return -1 if found is None else found.size()


def get_backend(group: Any = None) -> str:
    """The backend of a group."""
    return _resolve(group).backend


def get_backend_config(group: Any = None) -> str:
    """Which backend serves which type of device."""
    return repr(BackendConfig(get_backend(group)))


def get_default_backend_for_device(device: Any) -> str:
    """The backend that serves a type of device unless told otherwise."""
    kind = device.type if isinstance(device, flambeau.device) else flambeau.device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks of a group's members in the default group."""
    return list(_resolve(group).ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a member of the default group."""
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group.ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the default group of a member of a group."""
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, from the environment."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context "
        "and want the code to run locally instead.")


def get_pg_count() -> int:
    """The number of groups."""
    return len(_groups)


def new_group(ranks: Any = None, timeout: timedelta | None = None, backend: str | None = None,
              pg_options: Any = None, use_local_synchronization: bool = False,
              group_desc: str | None = None, device_id: Any = None, sort_ranks: bool = True) -> Any:
    """A group of some members of the default group. All members of that call this."""
    global _made
    world = _resolve(None)
    ranks = list(world.ranks) if ranks is None else list(ranks)
    ranks = sorted(ranks) if sort_ranks else ranks
    if len(ranks) > world.size():
        raise ValueError("the new group's world size should be less or equal to the world size "
                         "set by init_process_group")
    if not all(0 <= rank < world.size() for rank in ranks):
        raise ValueError("The new group's rank should be within the world_size set by "
                         "init_process_group")
    name = str(_made)
    _made += 1
    if world.global_rank not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(world.backend if backend is None else _check_backend(backend), world.store,
                        name, world.timeout if timeout is None else timeout, world.global_rank,
                        ranks, world.peers)
    made.group_desc = group_desc or "undefined"
    _groups[name] = made
    return made


def new_subgroups(group_size: int | None = None, group: Any = None,
                  timeout: timedelta | None = None, backend: str | None = None,
                  pg_options: Any = None, group_desc: str | None = None) -> Any:
    """Groups of equal size, and the one that this process is in."""
    size = _resolve(group).size()
    group_size = size if group_size is None else group_size
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if group_size > size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size "
                         f"({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by group_size={group_size}")
    members = _resolve(group).ranks
    return new_subgroups_by_enumeration(
        [members[i:i + group_size] for i in range(0, size, group_size)], timeout, backend,
        pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list: list[list[int]],
                                 timeout: timedelta | None = None, backend: str | None = None,
                                 pg_options: Any = None, group_desc: str | None = None) -> Any:
    """Groups of these members, and the one that this process is in."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
            for ranks in ranks_per_subgroup_list]
    mine = next((g for g in made if g is not GroupMember.NON_GROUP_MEMBER), None)
    return mine, made


def split_group(parent_pg: Any = None, split_ranks: list | None = None,
                timeout: timedelta | None = None, pg_options: Any = None,
                group_desc: str | None = None, backend: Any = None) -> Any:
    """The part of a group that this process comes to."""
    parts = split_ranks or [list(_resolve(parent_pg).ranks)]
    return new_subgroups_by_enumeration(parts, timeout, None, pg_options, group_desc)[0]


def shrink_group(ranks_to_exclude: list[int], group: Any = None, shrink_flags: int = 0,
                 pg_options: Any = None) -> Any:
    """Not offered: make a new group of those that stay."""
    raise NotImplementedError("shrink_group: make a new group of those that stay")
