"""How much distributed code checks and logs, and the names under which it appears in profiles."""
from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Iterator

from flambeau.distributed._c10d.backends.gloo import comm_name


class DebugLevel(enum.IntEnum):
    """How much distributed code checks and logs."""
    OFF, INFO, DETAIL = range(3)


DebugLevel.__module__ = "torch.distributed.distributed_c10d"
_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """How much distributed code checks and logs."""
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Set how much distributed code checks and logs."""
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Set it to what `TORCH_DISTRIBUTED_DEBUG` says."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[name])


@contextlib.contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Inside, collectives appear in profiles under this name.

    >>> from flambeau import distributed as dist
    >>> import flambeau
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> with flambeau.profiler.profile() as profile, record_comm("gradients"):
    ...     dist.all_reduce(flambeau.ones(2))
    >>> "gradients" in [event.key for event in profile.key_averages()]
    True
    >>> dist.destroy_process_group()
    """
    token = comm_name.set(name)
    try:
        yield
    finally:
        comm_name.reset(token)
