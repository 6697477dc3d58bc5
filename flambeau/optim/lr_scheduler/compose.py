"""Schedulers made of schedulers."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from flambeau._support.own_methods import define_in_subclasses
from flambeau.optim.lr_scheduler.base import LRScheduler, set_option
from flambeau.optim.lr_scheduler.plateau import ReduceLROnPlateau
from flambeau.optim.optimizer import Optimizer


@define_in_subclasses("state_dict", "load_state_dict")
class _Composed(LRScheduler):
    _schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimiser, with the state of each scheduler."""
        state = {name: value for name, value in self.__dict__.items()
                 if name not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(
            {name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(saved)


def _check_members(name: str, schedulers: list[LRScheduler], optimizer: Optimizer) -> None:
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if name == "SequentialLR" and isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional "
                f"kwargs to be specified when calling `step`, but got one at index {i} in the "
                "given schedulers sequence.")
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got "
                f"scheduler {type(scheduler).__name__} at index {i} has {scheduler.optimizer}, "
                f"which is different from {type(optimizer).__name__}.")


class SequentialLR(_Composed):
    r"""Schedulers one after another, each taking over at its milestone.

    Args:
        optimizer: the optimiser of all of them.
        schedulers: the schedulers.
        milestones: the steps at which the second, third … takes over; it then starts at its
            step 0.
        last_epoch: the last step taken before.

    Example::

        >>> import flambeau as torch
        >>> schedule = torch.optim.lr_scheduler
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> warmup = schedule.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> decay = schedule.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = schedule.SequentialLR(optimizer, [warmup, decay], milestones=[2])
        >>> rates = []
        >>> for _ in range(4):
        ...     rates += scheduler.get_last_lr(); optimizer.step(); scheduler.step()
        >>> rates
        [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
                 last_epoch: int = -1) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        _check_members("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}")
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler has set the rates of its step 0 when it was made: undo that.
        for group in optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        self.recursive_undo()
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Take back the first step of all schedulers, or of one, however nested."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for member in sched._schedulers:
                self.recursive_undo(member)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:
        """Step the scheduler whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    r"""Schedulers that all act at every step, one on the result of the other.

    Args:
        schedulers: the schedulers, each of which must work from the current learning rates.
        optimizer: their optimiser; by default that of the first.

    Example::

        >>> import flambeau as torch
        >>> schedule = torch.optim.lr_scheduler
        >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> members = [schedule.ConstantLR(optimizer, factor=0.5, total_iters=2),
        ...            schedule.ExponentialLR(optimizer, gamma=0.5)]
        >>> scheduler = schedule.ChainedScheduler(members)
        >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
        [0.25]
    """

    def __init__(self, schedulers: list[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no "
                "scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        _check_members("ChainedScheduler", schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._lrs()

    def step(self) -> None:
        """Step all the schedulers."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._lrs()
