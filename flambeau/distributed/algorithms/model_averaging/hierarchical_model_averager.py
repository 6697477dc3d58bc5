"""Averages over small groups of processes often, over large ones seldom."""
from __future__ import annotations

import logging
import warnings
from collections import OrderedDict
from typing import Any

from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.algorithms.model_averaging import averagers, utils

logger = logging.getLogger(__name__)


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages over groups of several sizes, each every so many steps.

    `period_group_size_dict` maps periods to group sizes, both ascending; the last size is that of
    the whole group. Where several periods fit a step, the largest counts.
    """

    def __init__(self, period_group_size_dict: dict[int, int] | None = None,
                 warmup_steps: int = 0, process_group: Any = None):
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict.keys())
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a "
                             "positive value.")
        if self._periods[-1] == 1:
            warnings.warn("When the maximum period in arg ``period_group_size_dict`` is 1, no "
                          "need to use model averaging because the communication cost of "
                          "all-reducing parameters will be no less than the cost of all-reducing "
                          "gradients by DistributedDataParallel in the backward pass. Therefore, "
                          "only DistributedDataParallel should be used for this case.",
                          stacklevel=2)
        size = dist.get_world_size(self.process_group)
        self.period_process_group_dict: OrderedDict[int, Any] = OrderedDict()
        logger.info("Model averaging hierarchy:")
        for period, group_size in period_group_size_dict.items():
            logger.info("\tEach group that has %s processes average parameters every %s "
                        "iterations, if no higher-level averaging.", group_size, period)
            if group_size != size:
                found, _ = dist.new_subgroups(group_size=group_size, group=self.process_group)
            else:
                found = self.process_group
            self.period_process_group_dict[period] = found
        if dist.get_world_size(self.period_process_group_dict[self._periods[-1]]) != size:
            raise ValueError("The last value in arg ``period_process_group_dict`` "
                             f"{list(period_group_size_dict.values())[-1]} must be equal to the "
                             f"size of arg ``process_group`` {size}.")
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps

    def _find_process_group(self) -> Any:
        """The group of the largest period that fits this step; None if none does."""
        for period in reversed(self._periods):
            if self.step % period == 0:
                return self.period_process_group_dict[period]
        return None

    def average_parameters(self, params: utils.Parameters) -> None:
        """Average the parameters that have gradients, if it is time; count the step."""
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
