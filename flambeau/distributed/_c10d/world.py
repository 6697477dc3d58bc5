"""The process groups that there are: `_world`."""
from __future__ import annotations

import hashlib
from typing import Any

from flambeau.distributed._c10d.options import GroupName
from flambeau.distributed._c10d.process_group import ProcessGroup

_pg_map: dict[Any, tuple[str, Any]] = {}
_pg_names: dict[Any, str] = {}
_pg_group_ranks: dict[Any, dict[int, int]] = {}
_pg_backend_config: dict[Any, str] = {}
_tags_to_pg: dict[str, list[Any]] = {}
_pg_to_tag: dict[Any, str] = {}
by_name: dict[str, Any] = {}                # what `_resolve_process_group` finds


class _WorldMeta(type):
    """`WORLD` of `group` and `GroupMember`: the default group."""

    @property
    def WORLD(cls) -> Any:
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, group: Any) -> None:
        _world.default_pg = group


class GroupMember(metaclass=_WorldMeta):
    """The default group, and what stands for a group that this process is no member of."""
    NON_GROUP_MEMBER = -100


class group(metaclass=_WorldMeta):
    """The default group."""


class _World:
    """All that is known about the groups of this process."""

    def __init__(self) -> None:
        self._default_pg: Any = None
        self._pg_coalesce_state: dict[Any, list[Any]] = {}
        self._comms: list[Any] = []
        self.group_count = 0

    @property
    def default_pg(self) -> Any:
        """The group of all processes."""
        return self._default_pg

    @default_pg.setter
    def default_pg(self, value: Any) -> None:
        self._default_pg = value

    @property
    def pg_map(self) -> dict[Any, tuple[str, Any]]:
        """The backend and the store of each group."""
        return _pg_map

    @property
    def pg_names(self) -> dict[Any, str]:
        """The name of each group."""
        return _pg_names

    @property
    def pg_group_ranks(self) -> dict[Any, dict[int, int]]:
        """The rank in a group of each of its members."""
        return _pg_group_ranks

    @property
    def pg_backend_config(self) -> dict[Any, str]:
        """Which backend of a group serves which type of device."""
        return _pg_backend_config

    @property
    def tags_to_pg(self) -> dict[str, list[Any]]:
        """The groups that have a tag."""
        return _tags_to_pg

    @property
    def pg_to_tag(self) -> dict[Any, str]:
        """The tag of each group."""
        return _pg_to_tag

    @property
    def pg_coalesce_state(self) -> dict[Any, list[Any]]:
        """The collectives that wait to run together."""
        return self._pg_coalesce_state

    @property
    def comms(self) -> list[Any]:
        """Communicators of torchcomms: there are none."""
        return self._comms

    @property
    def pg_config_info(self) -> list[dict[str, Any]]:
        """What is known of each group."""
        return [{"pg_name": _pg_names.get(g, ""), "pg_desc": g.group_desc,
                 "backend_config": _pg_backend_config.get(g, ""),
                 "ranks": list(ranks) if len(ranks) != _whole() else [],
                 "group_size": len(ranks), "group_count": self.group_count}
                for g, ranks in ((g, _pg_group_ranks[g]) for g in _pg_map)]

    def add(self, pg: Any, backend: str, store: Any, name: str, config: str,
            ranks: dict[int, int] | None, tag: str) -> None:
        """Enter a group."""
        _pg_map[pg] = (backend, store)
        _pg_names[pg] = by_name_key = name
        by_name[by_name_key] = pg
        _pg_backend_config[pg] = config
        if ranks is not None:
            _pg_group_ranks[pg] = ranks
        _tags_to_pg.setdefault(tag, []).append(pg)
        _pg_to_tag[pg] = tag

    def remove(self, pg: Any) -> None:
        """Forget a group."""
        for known in (_pg_map, _pg_group_ranks, _pg_backend_config):
            known.pop(pg, None)
        by_name.pop(_pg_names.pop(pg, ""), None)
        tag = _pg_to_tag.pop(pg, None)
        if tag is not None and pg in _tags_to_pg.get(tag, ()):
            _tags_to_pg[tag].remove(pg)
        self._pg_coalesce_state.pop(pg, None)

    def clear(self) -> None:
        """Forget all groups."""
        for pg in list(_pg_map):
            self.remove(pg)
        _tags_to_pg.clear()
        by_name.clear()
        self.group_count = 0
        self.default_pg = None


def _whole() -> int:
    return _world.default_pg.size() if _world.default_pg is not None else -1


_world = _World()


def resolve(group: Any) -> Any:
    """The group of a call, the default one unless given; None if this process is not in it."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return None
    if group is not None:
        return group
    if _world.default_pg is None:
        raise ValueError("Default process group has not been initialized, please make sure to "
                         "call init_process_group.")
    return _world.default_pg


def ranks_of(pg: Any) -> list[int]:
    """The members of a group, by their ranks in the default one."""
    return list(_pg_group_ranks[pg]) if pg in _pg_group_ranks else list(range(pg.size()))


def global_rank() -> int:
    """The number of this process in the default group."""
    return resolve(None).rank()


def hashed_name(ranks: list[int]) -> GroupName:
    """A name for a group that its members can agree on without asking."""
    text = "_".join([*map(str, ranks), str(len(_pg_names))])
    return GroupName(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def next_name(ranks: list[int], use_hashed_name: bool) -> GroupName:
    """The name of the next group."""
    if use_hashed_name:
        return hashed_name(ranks)
    name = GroupName(str(_world.group_count))
    _world.group_count += 1
    return name


def resolve_name(name: Any) -> ProcessGroup:
    """The group of that name."""
    if isinstance(name, ProcessGroup):
        return name
    if name not in by_name:
        raise RuntimeError(f"Could not resolve the process group registered under the name {name}")
    return by_name[name]


for _cls in (group, GroupMember, _World):
    _cls.__module__ = "torch.distributed.distributed_c10d"
