"""`Join`: processes with different numbers of inputs finish together.

Each process counts itself in before every step; those that have used up their inputs keep
counting, and shadow the collectives of the others, until nobody is left.
"""
from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, NamedTuple

import flambeau
from flambeau.distributed import distributed_c10d as dist

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY_STEPS = 1000          # of the others, after which a process that waits says so


class JoinHook:
    """What a process that has finished does for those that have not."""

    def main_hook(self) -> None:
        """Take part in the collectives of one step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once, when all have finished."""


class _JoinConfig(NamedTuple):
    """What a joinable is told of the context that it is in."""
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """That of a joinable in no context."""
        return _JoinConfig(enable=False, throw_on_early_termination=False, is_first_joinable=False)


class Joinable(ABC):
    """What takes part in `Join`: modules and optimizers that call collectives."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object."""

    @property
    @abstractmethod
    def join_device(self) -> flambeau.device:
        """Where the processes' counting happens."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes that join."""


class Join:
    """A context that a process leaves when all have used up their inputs.

    With `throw_on_early_termination` all raise as soon as one has. The other arguments go to the
    `join_hook` of each joinable.

    >>> with Join([model, optimizer]):                                        # doctest: +SKIP
    ...     for x, y in loader:
    ...         loss(model(x), y).backward()
    ...         optimizer.step()
    """

    def __init__(self, joinables: list[Joinable], enable: bool = True,
                 throw_on_early_termination: bool = False, **kwargs: Any):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable = joinables, enable
        self._throw_on_early_termination = throw_on_early_termination
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._set_joinable_configs()
        self._extract_dist_info()

    def _set_joinable_configs(self) -> None:
        for i, joinable in enumerate(self._joinables):
            joinable._join_config = _JoinConfig(
                enable=self._enable, is_first_joinable=i == 0,
                throw_on_early_termination=self._throw_on_early_termination)

    def _extract_dist_info(self) -> None:
        group, device = None, None
        for joinable in self._joinables:
            if group is None:
                group = joinable.join_process_group
            elif group != joinable.join_process_group:
                raise ValueError("Using join context manager with multiple process groups")
            device = joinable.join_device if device is None else device
        self._process_group, self._device = group, device
        self._rank = dist.get_rank(group)

    def __enter__(self) -> None:
        pass

    def __exit__(self, type: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if not self._enable or type:
            return
        is_last_joiner, steps = True, 0
        while self._get_num_nonjoined_procs():
            if steps == _MANY_STEPS:
                warnings.warn(f"Detected uneven input skew of greater than {_MANY_STEPS}. This "
                              f"means that rank {self._rank} has at least {_MANY_STEPS} fewer "
                              "inputs than other currently-active ranks. This level of skew could "
                              "lead to performance degradation during training.", stacklevel=2)
            if self._throw_on_early_termination:
                self._notify_procs_to_terminate()
            for hook in self._join_hooks:
                hook.main_hook()
            is_last_joiner = False
            steps += 1
        for hook in self._join_hooks:
            hook.post_hook(is_last_joiner)

    def _get_num_nonjoined_procs(self) -> int:
        """How many processes still have inputs."""
        count = flambeau.zeros(1, device=self._device)
        dist.all_reduce(count, group=self._process_group)
        return int(count.item())

    def _notify_procs_to_terminate(self) -> None:
        """Let all raise, this process too."""
        dist.all_reduce(flambeau.ones(1, device=self._device), group=self._process_group)
        raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Tell the others that this process goes on, before its collectives of one step; joinables
        call this. The first of a context's gets the work of counting, others None."""
        assert hasattr(joinable, "_join_config"), (
            f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = dist.all_reduce(flambeau.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            finished = flambeau.zeros(1, device=device)
            dist.all_reduce(finished, group=group)
            if finished.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing "
                                   "across all ranks.")
        return work
