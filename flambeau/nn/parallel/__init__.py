"""Modules on several devices."""

from flambeau._support.lazy.modules import parts

from .data_parallel import (
    DataParallel,
    data_parallel,
    gather,
    parallel_apply,
    replicate,
    scatter,
    scatter_kwargs,
)

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply",
           "replicate", "scatter"]


def __getattr__(name):
    # Only who uses processes pays for their machinery.
    if name == "DistributedDataParallel":
        from flambeau.nn.parallel.distributed import DistributedDataParallel

        return DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

parts(__name__, {"replicate": "replicate", "parallel_apply": "parallel_apply",
                 "scatter_gather": "scatter scatter_kwargs gather"})
