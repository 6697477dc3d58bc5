"""The rows of `benchmarks/run.py`: programs of users in small, which don't know whose torch it is.

A row has a group and a name, and is a function that takes `torch` and gives what is to be timed.
"""

from . import (
    blocks,
    calls,
    derivatives,
    files,
    kernels,
    loaders,
    models,
    modules,
    networks,
    optimizers,
    overhead,
    recurrent,
    shapes,
    training,
    transforms,
    types,
)
from .registry import FLOPS, ROWS, bytes_moved

__all__ = ["FLOPS", "ROWS", "bytes_moved"]
