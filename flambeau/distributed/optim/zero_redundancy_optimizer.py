"""`ZeroRedundancyOptimizer`: each process keeps the optimizer's state of its share."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.algorithms.join import Joinable, JoinHook
from flambeau.optim import Optimizer


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Wraps an optimizer whose state is spread over the processes of a group.

    In a group of one, the share of this process is everything, and each call goes to the
    optimizer, `self.optim`.

    Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
    2020, https://arxiv.org/abs/1910.02054.
    """

    def __init__(self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False,
                 **defaults: Any):
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp")
        self.process_group = process_group or dist._get_default_group()
        dist.only_alone("ZeroRedundancyOptimizer", self.process_group)
        self.rank, self.world_size = 0, 1
        self.global_rank = 0
        self.optim = optimizer_class(params, **defaults)
        super().__init__([{**group} for group in self.optim.param_groups], self.optim.defaults)
        self.param_groups = self.optim.param_groups
        self.state = self.optim.state

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """A step of the optimizer."""
        return self.optim.step(closure, **kwargs) if closure else self.optim.step(**kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters."""
        if "optim" in self.__dict__ and "param_groups" in self.__dict__ \
                and self.param_groups is self.optim.param_groups:
            self.optim.add_param_group(param_group)
        else:
            super().add_param_group(param_group)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the shares of all processes at one: they are there."""

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer."""
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process that has finished does for the others: nothing, there are none."""
        return JoinHook()

    @property
    def join_device(self) -> flambeau.device:
        """Where the processes' counting happens."""
        return flambeau.device("cpu")

    @property
    def join_process_group(self) -> Any:
        """The processes that join."""
        return self.process_group


__all__ = ["ZeroRedundancyOptimizer"]
