"""Tensors moved between GPUs. There are none: what is in main memory is refused."""
from __future__ import annotations

from typing import Any

from flambeau.nn.parallel.data_parallel import _CPU_ONLY


def broadcast(tensor: Any, devices: Any = None, *, out: Any = None) -> Any:
    """Copies of a tensor on several GPUs."""
    raise AssertionError(_CPU_ONLY.format("Broadcast"))


def broadcast_coalesced(tensors: Any, devices: Any, buffer_size: int = 10 * 2 ** 20) -> Any:
    """Copies of tensors on several GPUs, moved together."""
    raise AssertionError(_CPU_ONLY.format("Broadcast"))


def reduce_add(inputs: Any, destination: Any = None) -> Any:
    """The sum of tensors from several GPUs."""
    raise AssertionError("reduce_add expects all inputs to be on GPUs, but input 0 is on CPU")


def reduce_add_coalesced(inputs: Any, destination: Any = None, buffer_size: int = 10 * 2 ** 20
                         ) -> Any:
    """The sums of tensors from several GPUs, moved together."""
    return reduce_add(inputs, destination)


def scatter(tensor: Any, devices: Any = None, chunk_sizes: Any = None, dim: int = 0,
            streams: Any = None, *, out: Any = None) -> Any:
    """Pieces of a tensor on several GPUs."""
    raise AssertionError(_CPU_ONLY.format("Scatter"))


def gather(tensors: Any, dim: int = 0, destination: Any = None, *, out: Any = None) -> Any:
    """Tensors of several GPUs as one."""
    raise AssertionError(_CPU_ONLY.format("Gather"))
