"""`Join`: processes with different numbers of inputs finish together."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flambeau.distributed import distributed_c10d as dist


class JoinHook:
    """What a process that has finished does for those that have not."""

    def main_hook(self) -> None:
        """Take part in the collectives of one step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once, when all have finished."""


class Joinable(ABC):
    """What takes part in `Join`: modules and optimizers that call collectives."""

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Where the processes' counting happens."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes that join."""


class Join:
    """A context that a process leaves when all have used up their inputs.

    In a group of one that is at once: the hooks' `post_hook(is_last_joiner=True)` run.
    """

    def __init__(self, joinables: list[Joinable], enable: bool = True,
                 throw_on_early_termination: bool = False, **kwargs: Any):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = {id(j.join_process_group): j.join_process_group for j in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        if enable:
            dist.only_alone("Join", joinables[0].join_process_group)
        self._joinables, self._enable = joinables, enable
        self._rank = dist.get_rank(joinables[0].join_process_group)
        self._join_hooks = [j.join_hook(**kwargs) for j in joinables]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if self._enable and not kind:
            for hook in self._join_hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Tell the others that this process goes on: there are none."""


__all__ = ["Join", "JoinHook", "Joinable"]
