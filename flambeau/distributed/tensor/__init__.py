"""Tensors spread over a mesh of processes.

A `DTensor` is one tensor of which each process has a part; a placement for each dimension of the
mesh says which. Operations on it give distributed tensors, and communicate where they have to.

>>> from flambeau import distributed as dist
>>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
>>> mesh = dist.init_device_mesh("cpu", (1,))
>>> x = distribute_tensor(flambeau.ones(4, 2), mesh, [Shard(0)])
>>> x.sum().placements, x.sum().full_tensor()
((Partial(sum),), tensor(8.))
>>> dist.destroy_process_group()
"""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau._support.own_methods import adopt
from flambeau.distributed.tensor._api import *
from flambeau.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "distribute_tensor", "distribute_module", "Shard", "Replicate", "Partial",
           "Placement", "ones", "empty", "full", "rand", "randn", "zeros"]


def __getattr__(name: str) -> Any:
    import importlib
    if name in ("debug", "experimental", "parallel", "_random", "device_mesh"):
        return importlib.import_module(f"flambeau.distributed.tensor.{name}")
    if name in ("DeviceMesh", "init_device_mesh"):
        return getattr(importlib.import_module("flambeau.distributed.device_mesh"), name)
    if name in ("_DTensorSpec", "_TensorMeta", "_ShardOrderEntry"):
        return getattr(importlib.import_module("flambeau.distributed.tensor._dtensor_spec"),
                       name[1:])
    if name == "_StridedShard":
        return importlib.import_module(
            "flambeau.distributed.tensor.placement_types")._StridedShard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


adopt(globals(), "distributed.tensor._api")
