"""Means over all processes at first, then over the processes of one machine only."""
from __future__ import annotations

import logging
from typing import Any

from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.algorithms.ddp_comm_hooks.default_hooks import _allreduce_fut
from flambeau.futures import Future, _completed

logger = logging.getLogger(__name__)


class PostLocalSGDState:
    """For the first `start_localSGD_iter` steps gradients are averaged over `process_group`, then
    over `subgroup`, by default the processes of this machine, or not at all without
    `post_local_gradient_allreduce`. A model averager makes the models meet from time to time."""

    __slots__ = ["iter", "post_local_gradient_allreduce", "process_group", "start_localSGD_iter",
                 "subgroup"]

    def __init__(self, process_group: Any, subgroup: Any, start_localSGD_iter: int,
                 post_local_gradient_allreduce: bool = True):
        logger.info("Local SGD will be started after %s iterations", start_localSGD_iter)
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count a step, at its last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_localSGD_iter:
            logger.info("Start to apply local SGD after %s iterations.", self.iter)


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future[Tensor]:
    """Average over all processes, later over a subgroup: see `PostLocalSGDState`.

    Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", 2018,
    https://arxiv.org/abs/1808.07217.
    """
    gradients = bucket.buffer()
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(state.process_group, gradients)
    if not state.post_local_gradient_allreduce:
        return _completed(gradients)
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups()
    return _allreduce_fut(state.subgroup, gradients)
