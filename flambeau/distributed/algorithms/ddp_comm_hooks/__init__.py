"""Ways in which `DistributedDataParallel` shares gradients: hooks for `register_comm_hook`."""
from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from flambeau.distributed.algorithms.ddp_comm_hooks import (
    debugging_hooks,
    default_hooks,
    optimizer_overlap_hooks,
    powerSGD_hook,
    quantization_hooks,
)

quantization = quantization_hooks
__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _register(hook: Any, model: Any, state: Any) -> None:
    model.register_comm_hook(state, hook)


def _register_power_sgd(hook: Any, model: Any, state: Any, matrix_approximation_rank: int,
                        start_powerSGD_iter: int = 1000) -> None:
    """Register a PowerSGD hook; `state` is the process group."""
    model.register_comm_hook(powerSGD_hook.PowerSGDState(
        process_group=state, matrix_approximation_rank=matrix_approximation_rank,
        start_powerSGD_iter=start_powerSGD_iter), hook)


_ddp_comm_hook_wrapper, _powerSGD_comm_hook_wrapper = _register, _register_power_sgd


class DDPCommHookType(Enum):
    """Hooks that have names, for `register_ddp_comm_hook`."""
    ALLREDUCE = partial(_register, default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(_register, default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(_register, default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = partial(_register, quantization_hooks.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = partial(_register, quantization_hooks.quantization_perchannel_hook)
    POWER_SGD = partial(_register_power_sgd, powerSGD_hook.powerSGD_hook,
                        matrix_approximation_rank=1)
    POWER_SGD_RANK2 = partial(_register_power_sgd, powerSGD_hook.powerSGD_hook,
                              matrix_approximation_rank=2)
    BATCHED_POWER_SGD = partial(_register_power_sgd, powerSGD_hook.batched_powerSGD_hook,
                                matrix_approximation_rank=1)
    BATCHED_POWER_SGD_RANK2 = partial(_register_power_sgd, powerSGD_hook.batched_powerSGD_hook,
                                      matrix_approximation_rank=2)
    NOOP = partial(_register, debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let a `DistributedDataParallel` model share gradients with a hook that has a name.

    >>> register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, model)          # doctest: +SKIP
    """
    comm_hook_type.value(model=model, state=state)
