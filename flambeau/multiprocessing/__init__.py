"""Python's `multiprocessing`, whose processes can send tensors to each other.

A tensor that is sent moves to memory that both processes see: what one writes to it, the other
reads. `reductions` says how.
"""
from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *

from flambeau.multiprocessing import reductions
from flambeau.multiprocessing.reductions import init_reductions
from flambeau.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes: what they mean says `reductions`."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """How memory that is shared from now on travels."""
    return reductions.strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how memory that is shared from now on travels."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of "
                             f"{get_all_sharing_strategies()}")
    reductions.strategy = new_strategy


init_reductions()

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy",
           *_python.__all__]


def _set_thread_name(name: str) -> None:
    """Name this thread, for the system's tools."""
    from flambeau._C import _set_thread_name
    _set_thread_name(name)


def _get_thread_name() -> str:
    """The name of this thread."""
    from flambeau._C import _get_thread_name
    return _get_thread_name()
