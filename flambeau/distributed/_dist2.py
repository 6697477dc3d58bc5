"""Process groups as objects, without a default group that all calls belong to.

    group = new_group("gloo", timedelta(seconds=60), "cpu")
    with process_group(group):
        current_process_group().allreduce([x]).wait()
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Protocol

import flambeau
from flambeau.distributed._c10d.groups import made_group
from flambeau.distributed._c10d.process_group import ProcessGroup
from flambeau.distributed._c10d.reduce_op import ReduceOp
from flambeau.distributed._c10d.stores import Store
from flambeau.distributed.rendezvous import rendezvous

__all__ = ["ProcessGroup", "ProcessGroupFactory", "ReduceOp", "current_process_group", "new_group",
           "process_group", "register_backend"]

_current: ContextVar[ProcessGroup | None] = ContextVar("process_group", default=None)


class ProcessGroupFactory(Protocol):
    """What makes the groups of a backend."""

    def __call__(self, store: Store, rank: int, world_size: int, timeout: timedelta,
                 device: flambeau.device, **kwargs: Any) -> ProcessGroup:
        """A group of the processes that share a store."""
        ...


def _gloo_factory(store: Store, rank: int, world_size: int, timeout: timedelta,
                  device: flambeau.device, **kwargs: Any) -> ProcessGroup:
    assert not kwargs, "Gloo backend received unexpected kwargs"
    return made_group(store, rank, world_size, "gloo", timeout, "")


_BACKENDS: dict[str, ProcessGroupFactory] = {"gloo": _gloo_factory}


def register_backend(name: str, func: ProcessGroupFactory) -> None:
    """Let a function make the groups of a backend."""
    if name in _BACKENDS:
        raise ValueError(f"Backend {name} already registered")
    _BACKENDS[name] = func


def new_group(backend: str, timeout: timedelta, device: str | flambeau.device, **kwargs: Any
              ) -> ProcessGroup:
    """A group of all processes, which meet as the environment says (`env://`)."""
    if backend not in _BACKENDS:
        raise ValueError(f"Backend {backend} not registered")
    store, rank, world_size = next(iter(rendezvous("env://")))
    store.set_timeout(timeout)
    return _BACKENDS[backend](store, rank, world_size, timeout, flambeau.device(device), **kwargs)


def current_process_group() -> ProcessGroup | None:
    """The group of the innermost `process_group`, None outside."""
    return _current.get()


@contextmanager
def process_group(pg: ProcessGroup) -> Iterator[None]:
    """Inside, that group is the current one."""
    token = _current.set(pg)
    try:
        yield
    finally:
        _current.reset(token)
