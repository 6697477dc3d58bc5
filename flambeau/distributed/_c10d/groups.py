"""How process groups are made, and who is in them.

The default group is all processes that have called `init_process_group`; others are made of some
of its members. Tensors travel over TCP, on connections that the processes make to each other; the
groups that are made later use those of the default group.
"""
from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flambeau.distributed._c10d.backends.gloo import GlooOptions, ProcessGroupGloo
from flambeau.distributed._c10d.backends.registry import (
    Backend,
    BackendConfig,
    check_timeout,
    default_timeout,
    is_mpi_available,
)
from flambeau.distributed._c10d.options import DistributedBackendOptions
from flambeau.distributed._c10d.process_group import BackendType, ProcessGroup
from flambeau.distributed._c10d.stores import DistNetworkError, PrefixStore, Store
from flambeau.distributed._c10d.transport.connections import Peers
from flambeau.distributed._c10d.world import GroupMember, _world, next_name, ranks_of, resolve
from flambeau.distributed.rendezvous import rendezvous

_LOOKING_AGAIN = 10.0                   # seconds


def is_initialized() -> bool:
    """Has `init_process_group` been called?"""
    return _world.default_pg is not None


# ---- making groups ------------------------------------------------------------------------------

def _shared_peers() -> Peers | None:
    """The default group's connections, which other groups can use."""
    found = getattr(_world.default_pg, "_types", {})
    return next((backend.peers for backend in found.values() if hasattr(backend, "peers")), None)


def _gloo(store: Store, rank: int, ranks: list[int], name: str, timeout: timedelta, options: Any,
          ) -> ProcessGroupGloo:
    shared = _shared_peers()
    options = options if isinstance(options, GlooOptions) else GlooOptions(timeout)
    options.group_name, options.global_ranks_in_group = name, ranks
    if shared is None:
        return ProcessGroupGloo(store, rank, len(ranks), options, name=name)
    return ProcessGroupGloo(store, rank, len(ranks), options, peers=shared, name=name,
                            ranks=ranks)


def _mpi(store: Store, rank: int, ranks: list[int], name: str, timeout: timedelta, options: Any,
         ) -> Any:
    from flambeau.distributed._c10d.backends.mpi import make_group
    return make_group(store, rank, ranks, name, timeout, options, _shared_peers())


def _default_config(store: Store, rank: int, size: int) -> BackendConfig:
    """The backends of a group for which none is named: those of the default group, and for that
    MPI, if all processes have it."""
    if _world.default_pg is not None:
        return BackendConfig(_world.pg_backend_config.get(_world.default_pg, "cpu:gloo"))
    from flambeau.distributed._c10d.backends.mpi import everywhere
    return BackendConfig("cpu:mpi" if size > 1 and everywhere(store, rank, size) else "cpu:gloo")


_MAKERS: dict[str, Callable[..., Any]] = {Backend.GLOO: _gloo, Backend.MPI: _mpi}


def _check_built_in(name: str) -> None:
    if name == Backend.MPI and not is_mpi_available():
        raise RuntimeError("Distributed package doesn't have MPI built in: mpi4py and MPICH are "
                           "not installed. pip install 'flambeau[mpi]' installs them.")
    if name in (Backend.NCCL, Backend.XCCL):
        raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")


def _check_known(name: str) -> None:
    """There is a backend of that name, if it is one."""
    if ":" not in name:
        assert name in Backend.backend_list, f"Unknown backend type {name}"
        if name.upper() not in Backend._plugins:
            _check_built_in(name)


def new_process_group_helper(group_size: int, group_rank: int, global_ranks_in_group: list[int],
                             backend: str, store: Store, group_name: str,
                             backend_options: Any = None, timeout: timedelta | None = None,
                             pg_tag: str | None = None, device_id: Any = None,
                             group_desc: str | None = None) -> tuple[Any, Any]:
    """Make a group, and enter it in `_world`; gives it, and its store."""
    if group_name in _world.pg_names.values():
        raise ValueError("The specified group name has already been created, please use a "
                         "different group name")
    if timeout is None:
        timeout = default_timeout(str(backend))
    check_timeout(timeout)
    members = list(global_ranks_in_group) or list(range(group_size))
    if global_ranks_in_group and resolve(None).rank() not in members:
        return GroupMember.NON_GROUP_MEMBER, None
    prefix = PrefixStore(f"{group_name}/", store)
    config = BackendConfig(Backend(backend)) if backend not in ("", Backend.UNDEFINED, None) else \
        _default_config(prefix, group_rank, group_size)
    group = ProcessGroup(prefix, group_rank, group_size)
    made: dict[str, Any] = {}
    for device, name in config.get_device_backend_map().items():
        if name in made:
            group._register_backend(device, Backend.backend_type_map[name], made[name])
            continue
        if name.upper() not in Backend._plugins:
            _check_built_in(name)
        if name in _MAKERS:
            made[name] = _MAKERS[name](prefix, group_rank, members, group_name, timeout,
                                       backend_options)
        else:
            found = _plugin(name, prefix, group_rank, group_size, timeout, group_name, members,
                            backend_options)
            if isinstance(found, ProcessGroup):
                group = found
                break
            made[name] = found
        group._register_backend(device, Backend.backend_type_map[name], made[name])
    types = [Backend.backend_type_map[name] for name in made]
    if types:
        group._set_default_backend(
            BackendType.GLOO if BackendType.GLOO in types else types[0])
    group._set_group_name(group_name)
    group._set_group_desc(group_desc or "undefined")
    tag = f"ptd:{group_name}" if pg_tag in (None, "") else f"user:{pg_tag}"
    _world.add(group, str(backend) or Backend.UNDEFINED, prefix, group_name, repr(config), None,
               tag)
    if tag.startswith("ptd"):
        _world.tags_to_pg.setdefault("", []).append(group)
    return group, prefix


def _plugin(name: str, store: Store, rank: int, size: int, timeout: timedelta, group_name: str,
            members: list[int], options: Any) -> Any:
    """A backend that users have registered."""
    assert name.upper() in Backend._plugins, f"Unknown c10d backend type {name.upper()}"
    plugin = Backend._plugins[name.upper()]
    if not plugin.extended_api:
        return plugin.creator_fn(store, rank, size, timeout)
    about = DistributedBackendOptions(store, rank, size, timeout, group_name, members)
    return plugin.creator_fn(about, options)


def made_group(store: Store, rank: int, size: int, backend: str, timeout: timedelta, name: str
               ) -> ProcessGroup:
    """A group with connections of its own, whose processes meet in a store."""
    group = ProcessGroup(store, rank, size)
    gloo = ProcessGroupGloo(store, rank, size, GlooOptions(timeout), name=name)
    group._register_backend("cpu", BackendType.GLOO, gloo)
    group._set_default_backend(BackendType.GLOO)
    group._set_group_name(name)
    _world.add(group, backend, store, name, f"cpu:{backend}", dict(zip(range(size), range(size))),
               f"ptd:{name}")
    return group


def group_of_members(parent: Any, ranks: list[int], timeout: timedelta | None, name: str,
                     description: str) -> Any:
    """A group of some members of another, by their ranks there."""
    members = [ranks_of(parent)[rank] for rank in ranks]
    backend, _ = _world.pg_map[parent]
    found, _ = new_process_group_helper(
        len(ranks), members.index(resolve(None).rank()), members, backend, _default_store(), name,
        timeout=timeout or _timeout_of(parent), group_desc=description)
    _world.pg_group_ranks[found] = {member: i for i, member in enumerate(members)}
    return found


def _timeout_of(group: Any) -> timedelta:
    return group._default_backend().options._timeout


def _default_store() -> Store:
    return _world.pg_map[resolve(None)][1]


def init_process_group(backend: str | None = None, init_method: str | None = None,
                       timeout: timedelta | None = None, world_size: int = -1, rank: int = -1,
                       store: Store | None = None, group_name: str = "", pg_options: Any = None,
                       device_id: Any = None, _ranks: list[int] | None = None) -> None:
    """Make the default group: each of `world_size` processes calls this, with its own `rank`. They
    find each other through `init_method` (by default the environment's `MASTER_ADDR` and
    `MASTER_PORT`, which `torchrun` sets) or through a store.

    >>> from flambeau.distributed._c10d.stores import HashStore
    >>> init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    >>> get_rank(), get_world_size()
    (0, 1)
    >>> destroy_process_group()
    """
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    name = Backend(backend) if backend else Backend.UNDEFINED
    _check_known(name)
    timeout = default_timeout(name) if timeout is None else timeout
    check_timeout(timeout)
    group_name = group_name or next_name([], False)
    if store is None:
        url = "env://" if init_method is None else init_method
        found = _met(url, rank, world_size, timeout, lambda store, rank, size:
                     _default_group(store, rank, size, backend, group_name, pg_options, timeout))
    else:
        found = _default_group(store, rank, world_size, backend, group_name, pg_options, timeout)
    _world.default_pg = found
    _world.pg_group_ranks[found] = {i: i for i in range(found.size())}


def _default_group(store: Store, rank: int, size: int, backend: str | None, name: str,
                   options: Any, timeout: timedelta) -> Any:
    if not 0 <= rank < size:
        raise ValueError(f"init_process_group: rank {rank} in a group of {size}")
    return new_process_group_helper(size, rank, [], backend or "", store, name, options, timeout,
                                    group_desc="default_pg")[0]


def _met(url: str, rank: int, size: int, timeout: timedelta, make: Callable[..., Any]) -> Any:
    """The group of processes that meet at a URL. The store of a group that has just ended may
    answer there still, so that a process which finds nobody looks again, for a while."""
    end = time.monotonic() + min(_LOOKING_AGAIN, timeout.total_seconds())
    while True:
        try:
            store, rank, size = next(rendezvous(url, rank, size, timeout=timeout))
            store.set_timeout(timeout)
            return make(PrefixStore("default_pg", store), rank, size)
        except DistNetworkError:
            holds_store = (rank if rank >= 0 else int(os.environ.get("RANK", 0))) == 0
            if holds_store or time.monotonic() > end:
                raise
            store = None
            time.sleep(0.05)


def destroy_process_group(group: Any = None) -> None:
    """Forget a group; without argument, all of them."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    world = _world.default_pg
    if group is None or group is world:
        assert world is not None, "Process group cannot be None"
        for known in reversed(list(_world.pg_map)):
            known.shutdown()
        _world.clear()
        return
    if group not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    group.shutdown()
    _world.remove(group)


def abort_process_group(group: Any = None) -> None:
    """End a group, or all of them, without waiting for what runs."""
    if group is None or group is _world.default_pg:
        for known in reversed(list(_world.pg_map)):
            known.abort()
        _world.clear()
        return
    if group not in _world.pg_map:
        raise ValueError("Invalid process group specified or has been destroyed.")
    group.abort()
    _world.remove(group)


def only_alone(what: str, group: Any = None) -> None:
    """Refuse what is there for one process only."""
    if is_initialized() and get_world_size(group) > 1:
        raise NotImplementedError(f"{what} in a group of {get_world_size(group)} processes")


# ---- who is in a group --------------------------------------------------------------------------

def get_rank(group: Any = None) -> int:
    """The number of this process in a group; -1 if it is not in it."""
    found = resolve(group)
    if found is None:
        return -1
    resolve(None)                               # which has to be there
    if not isinstance(found, ProcessGroup):
        raise _not_registered(group)
    return found.rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes in a group; -1 if this one is not in it."""
    found = resolve(group)
    return -1 if found is None else found.size()


def get_backend(group: Any = None) -> str:
    """The backend of a group."""
    found = resolve(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    if found not in _world.pg_map:
        raise ValueError(f"Process group {found} is not initialized in the world group map. "
                         "Please initialize the group first.")
    return Backend(_world.pg_map[found][0])


def get_backend_config(group: Any = None) -> str:
    """Which backend serves which type of device."""
    found = resolve(group)
    if found is None or found not in _world.pg_backend_config:
        raise ValueError("Invalid process group specified")
    return _world.pg_backend_config[found]


def get_process_group_ranks(group: Any) -> list[int]:
    """The ranks of a group's members in the default group."""
    found = resolve(group)
    if not isinstance(found, ProcessGroup):
        raise KeyError(group)
    return ranks_of(found)


def _not_registered(group: Any) -> ValueError:
    return ValueError(f"Group {group} is not registered, please create group with "
                      "torch.distributed.new_group API")


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of a member of the default group."""
    if group is GroupMember.WORLD:
        return global_rank
    if group not in _world.pg_group_ranks:
        raise _not_registered(group)
    ranks = _world.pg_group_ranks[group]
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the default group of a member of a group."""
    if group is GroupMember.WORLD:
        return group_rank
    if group not in _world.pg_group_ranks:
        raise _not_registered(group)
    for rank, at in _world.pg_group_ranks[group].items():
        if at == group_rank:
            return rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


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
    return _world.group_count


# ---- groups of some members ---------------------------------------------------------------------

def new_group(ranks: Any = None, timeout: timedelta | None = None, backend: str | None = None,
              pg_options: Any = None, use_local_synchronization: bool = False,
              group_desc: str | None = None, device_id: Any = None, sort_ranks: bool = True) -> Any:
    """A group of some members of the default group. All members of that call this; with
    `use_local_synchronization`, those of the new group."""
    return new_group_with_tag(ranks, timeout, backend, pg_options, None,
                              use_local_synchronization, group_desc, device_id, sort_ranks)


def new_group_with_tag(ranks: Any = None, timeout: timedelta | None = None,
                       backend: str | None = None, backend_options: Any = None,
                       pg_tag: str | None = None, use_local_synchronization: bool = False,
                       group_desc: str | None = None, device_id: Any = None,
                       sort_ranks: bool = True) -> Any:
    """`new_group`, with a tag under which the group can be found."""
    world = resolve(None)
    members = list(range(world.size())) if ranks is None else list(ranks)
    members = sorted(members) if sort_ranks else members
    if len(set(members)) < len(members):
        raise ValueError(f"ranks list must not contain duplicate entries, got {list(ranks)}")
    if len(members) > world.size():
        raise ValueError("the new group's world size should be less or equal to the world size "
                         "set by init_process_group")
    for rank in members:
        if not 0 <= rank < world.size():
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to "
                             f"{world.size() - 1} (world_size={world.size()})")
    named = _world.pg_map[world][0] if backend is None else Backend(backend)
    _check_known(named)
    if use_local_synchronization and ranks is not None and world.rank() not in members:
        return None
    name = next_name(members, use_hashed_name=use_local_synchronization)
    if world.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    found, _ = new_process_group_helper(
        len(members), members.index(world.rank()), members, named, _default_store(), name,
        backend_options, _timeout_of(world) if timeout is None and hasattr(world, "_types")
        and world._types else timeout, pg_tag, device_id, group_desc)
    _world.pg_group_ranks[found] = {member: i for i, member in enumerate(members)}
    return found


def new_subgroups(group_size: int | None = None, group: Any = None,
                  timeout: timedelta | None = None, backend: str | None = None,
                  pg_options: Any = None, group_desc: str | None = None) -> Any:
    """Groups of equal size, and the one that this process is in."""
    size = resolve(group).size()
    group_size = size if group_size is None else group_size
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if group_size > size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size "
                         f"({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by group_size={group_size}")
    members = ranks_of(resolve(group))
    return new_subgroups_by_enumeration(
        [members[i:i + group_size] for i in range(0, size, group_size)], timeout, backend,
        pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list: list[list[int]],
                                 timeout: timedelta | None = None, backend: str | None = None,
                                 pg_options: Any = None, group_desc: str | None = None) -> Any:
    """Groups of these members, and the one that this process is in."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: set[int] = set()
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup "
                                 f"{next(r for r in ranks_per_subgroup_list if rank in r)} and "
                                 f"{ranks}")
            seen.add(rank)
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
            for ranks in ranks_per_subgroup_list]
    mine = next((g for g in made if g is not GroupMember.NON_GROUP_MEMBER), None)
    return mine, made


def split_group(parent_pg: Any = None, split_ranks: list | None = None,
                timeout: timedelta | None = None, pg_options: Any = None,
                group_desc: str | None = None, backend: Any = None) -> Any:
    """The part of a group that this process comes to: the first of the lists of `split_ranks`,
    ranks of the parent, that names it; None if none does."""
    parent = resolve(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    if not all(0 <= rank < parent.size() for ranks in split_ranks for rank in ranks):
        raise ValueError("the split group's rank should be within the parent group's size")
    mine = None
    for ranks in split_ranks:
        if len(ranks) != len(set(ranks)):
            raise ValueError("the split group cannot have duplicate ranks")
        ranks = sorted(ranks)
        name = next_name(ranks, use_hashed_name=False)
        if mine is None and parent.rank() in ranks:
            mine = group_of_members(parent, ranks, timeout, name,
                                    group_desc or f"{parent.group_desc}:split:{name}")
    return mine


def shrink_group(ranks_to_exclude: list[int], group: Any = None, shrink_flags: int = 0,
                 pg_options: Any = None) -> Any:
    """A group without some of the members, for those that stay; gloo cannot do it."""
    found = resolve(group)
    if not ranks_to_exclude:
        raise ValueError("ranks_to_exclude cannot be empty. To shrink a group, you must specify at "
                         "least one rank to exclude. Example: [failed_rank_id]")
    if found.size() < 2:
        raise ValueError(f"Cannot shrink a process group with size {found.size()}. Group must have "
                         "at least 2 ranks to support shrinking.")
    raise RuntimeError(f"Process group backend {found.name()} does not support shrinking: make a "
                       "new group of those that stay")
