"""Optimizers whose step for a bucket of gradients follows as soon as these have been shared."""
from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from flambeau.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from flambeau.distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks import (
    _hook_then_optimizer,
    _OptimizerHookState,
)
from flambeau.distributed.optim import as_functional_optim
from flambeau.optim import Optimizer

_registered_overlapped_optims: dict[type, type] = {}


def register_overlapped(optim_cls: type) -> Callable[[type], type]:
    """A decorator: the class is the overlapped form of an optimizer."""
    def decorator(target_overlapped_optim_cls: type) -> type:
        if target_overlapped_optim_cls in _registered_overlapped_optims:
            raise ValueError(f"{target_overlapped_optim_cls} already registered with optim_cls "
                             f"{_registered_overlapped_optims[optim_cls]} {optim_cls}, trying to "
                             "re-register it.")
        _registered_overlapped_optims[optim_cls] = target_overlapped_optim_cls
        return target_overlapped_optim_cls
    return decorator


class OverlappedOptimizer(ABC):
    """An optimizer that wrappers of modules call in the backward pass."""

    def __init__(self, optim_cls: type):
        self.optim_cls = optim_cls

    @abstractmethod
    def register_ddp(self, ddp: Any) -> None:
        """Step in the backward pass of a `DistributedDataParallel`."""
        raise NotImplementedError(f"{self.__class__.__name__} does not support overlapped DDP.")

    @abstractmethod
    def register_fsdp(self, fsdp: Any) -> None:
        """Step in the backward pass of a `FullyShardedDataParallel`."""
        raise NotImplementedError(f"{self.__class__.__name__} does not support overlapped FSDP.")


@register_overlapped(Optimizer)
class _OverlappedStandardOptimizer(OverlappedOptimizer):
    """An optimizer of `flambeau.optim`, overlapped."""

    def __init__(self, optim_cls: type, params: Any, *optim_args: Any, **optim_kwargs: Any):
        super().__init__(optim_cls)
        self._opt_hook_state = _OptimizerHookState(
            as_functional_optim(self.optim_cls, *optim_args, **optim_kwargs), params)

    def register_ddp(self, ddp: Any) -> None:
        ddp.register_comm_hook(None, _hook_then_optimizer(allreduce_hook, self._opt_hook_state))

    def register_fsdp(self, fsdp: Any) -> None:
        super().register_fsdp(fsdp)  # type: ignore[safe-super]


def _as_overlapped_optim(optim_cls: type, params: Any, *args: Any, **kwargs: Any) -> Any:
    """The overlapped form of an optimizer."""
    for cls in inspect.getmro(optim_cls):
        if cls in _registered_overlapped_optims:
            return _registered_overlapped_optims[cls](optim_cls, params, *args, **kwargs)
    return _OverlappedStandardOptimizer(optim_cls, params, *args, **kwargs)
