"""Steps of `ZeroRedundancyOptimizer` in the backward pass: what is refused."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook
from flambeau.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from flambeau.distributed.optim import ZeroRedundancyOptimizer
from flambeau.nn.parallel import DistributedDataParallel

HOOKS = [ddp_zero_hook.hook_with_zero_step, ddp_zero_hook.hook_with_zero_step_interleaved]


@pytest.mark.parametrize("make", HOOKS)
def test_the_optimizer_has_to_know(alone, make):
    model = DistributedDataParallel(nn.Linear(2, 1))
    zero = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    with pytest.raises(ValueError, match="must be constructed with `overlap_with_ddp=True`"):
        make(allreduce_hook, model, zero)


@pytest.mark.parametrize("make", HOOKS)
def test_gloo_may_hang(alone, make):
    model = DistributedDataParallel(nn.Linear(2, 1))
    zero = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, overlap_with_ddp=True,
                                   lr=0.1)
    with pytest.raises(RuntimeError, match="Gloo backend using Overlapping DDP with ZeRO may meet"):
        make(allreduce_hook, model, zero)
