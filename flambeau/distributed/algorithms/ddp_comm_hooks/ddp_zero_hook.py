"""Hooks that share gradients and let `ZeroRedundancyOptimizer` step in the backward pass.

They need collectives that run apart from the program, in an order of their own: with gloo, which
has none, they are refused, as PyTorch refuses them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.distributed import distributed_c10d as dist

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]

Hook = Callable[[Any, Any], Any]


def _checked(name: str, ddp: Any, zero: Any) -> None:
    if not zero._overlap_with_ddp:
        raise ValueError("ZeroRedundancyOptimizer must be constructed with "
                         "`overlap_with_ddp=True` to use this hook properly")
    backend = dist.get_backend(ddp.process_group)
    if backend == dist.Backend.UNDEFINED:               # none was named: the one of the device
        config = dist.BackendConfig(dist.Backend(dist.get_backend_config(ddp.process_group)))
        backend = config.get_device_backend_map()[ddp.device_type]
    if backend == dist.Backend.GLOO:
        raise RuntimeError("Gloo backend using Overlapping DDP with ZeRO may meet hangs")
    raise NotImplementedError(f"{name} with the backend {backend}")


def hook_with_zero_step(hook: Hook, ddp: Any, zero: Any, shard_buckets: bool = False) -> Hook:
    """`hook`, and at the end of the backward pass a step of `zero`, which shares parameters."""
    _checked("hook_with_zero_step", ddp, zero)
    return hook


def hook_with_zero_step_interleaved(hook: Hook, ddp: Any, zero: Any,
                                    shard_buckets: bool = False) -> Hook:
    """The same, with a step for each bucket as soon as it has been shared."""
    _checked("hook_with_zero_step_interleaved", ddp, zero)
    return hook
