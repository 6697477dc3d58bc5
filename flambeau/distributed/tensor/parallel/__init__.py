"""Tensor parallelism: modules whose parameters several processes share, by a plan.

A *style* says how one module is cut and how its inputs and outputs lie; a plan gives styles to the
modules of a model.

>>> from flambeau import distributed as dist
>>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
>>> mesh = dist.init_device_mesh("cpu", (1,))
>>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
>>> model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
>>> model[0].weight.placements, model[2].weight.placements
((Shard(dim=0),), (Shard(dim=1),))
>>> model(flambeau.ones(3, 4)).shape
torch.Size([3, 2])
>>> dist.destroy_process_group()
"""
from __future__ import annotations

from flambeau.distributed.tensor.parallel.api import parallelize_module
from flambeau.distributed.tensor.parallel.loss import loss_parallel
from flambeau.distributed.tensor.parallel.style import *

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput",
           "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel", "parallelize_module",
           "loss_parallel"]
