"""Gradients that are not shared."""
from __future__ import annotations

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from flambeau.nn.parallel import DistributedDataParallel
from flambeau.testing._internal.distributed.fake_pg import FakeStore


def test_each_process_keeps_its_own():
    """With three others a mean would be a quarter."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    try:
        for hook, expected in ((None, 0.25), (noop_hook, 1.0)):
            model = DistributedDataParallel(nn.Linear(2, 1))
            if hook is not None:
                model.register_comm_hook(None, hook)
            model(torch.ones(1, 2)).sum().backward()
            assert model.module.weight.grad.tolist() == [[expected] * 2]
    finally:
        dist.destroy_process_group()
