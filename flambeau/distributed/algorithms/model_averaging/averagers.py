"""Averagers: means of models every so many steps."""
from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.algorithms.model_averaging import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages models over a process group; counts the steps."""

    def __init__(self, process_group: Any = None):
        self.process_group = dist.group.WORLD if process_group is None else process_group
        if self.process_group is None:
            raise TypeError("Invariant encountered: value was None when it should not be")
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Any) -> None:
        """Called after each step of the optimizer."""


class PeriodicModelAverager(ModelAverager):
    """Averages every `period` steps, beginning with step `warmup_steps`.

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> averager = PeriodicModelAverager(period=4)
    >>> averager.average_parameters(nn.Linear(1, 1).parameters())
    >>> averager.step
    1
    >>> dist.destroy_process_group()
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn("When period is 1, no need to use model averaging because the "
                          "communication cost of all-reducing parameters will be no less than "
                          "the cost of all-reducing gradients by DistributedDataParallel in the "
                          "backward pass. Therefore, only DistributedDataParallel should be used "
                          "for this case.", stacklevel=2)
        self.period = period

    def average_parameters(self, params: utils.Parameters) -> None:
        """Average the parameters that have gradients, if it is time; count the step."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
