"""A module whose parameters are spread over the processes of a group; here, over one."""
from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist


class ShardingStrategy(enum.Enum):
    """What is spread: parameters, gradients and the optimizer's state, a part, or nothing."""
    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class FullyShardedDataParallel(nn.Module):
    """Wraps a module whose parameters each process keeps a share of.

    In a group of one that share is everything, so nothing is cut, gathered or moved: parameters
    stay as they are, as with `use_orig_params=True`, and calls go to the module. Options that
    change numbers (mixed precision, offloading) raise `NotImplementedError`.

    Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", 2023,
    https://arxiv.org/abs/2304.11277.
    """

    def __init__(self, module: nn.Module, process_group: Any = None,
                 sharding_strategy: ShardingStrategy | None = None, cpu_offload: Any = None,
                 auto_wrap_policy: Any = None, backward_prefetch: Any = None,
                 mixed_precision: Any = None, ignored_modules: Any = None,
                 param_init_fn: Any = None, device_id: Any = None,
                 sync_module_states: bool = False, forward_prefetch: bool = False,
                 limit_all_gathers: bool = True, use_orig_params: bool = False,
                 ignored_states: Any = None, device_mesh: Any = None):
        super().__init__()
        for name, value in {"cpu_offload": cpu_offload, "mixed_precision": mixed_precision,
                            "param_init_fn": param_init_fn, "device_mesh": device_mesh}.items():
            if value is not None:
                raise NotImplementedError(f"FullyShardedDataParallel: {name}")
        self.process_group = process_group or dist._get_default_group()
        dist.only_alone("FullyShardedDataParallel", self.process_group)
        self.rank, self.world_size = 0, 1
        self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        self._fsdp_wrapped_module = module

    @property
    def module(self) -> nn.Module:
        """The wrapped module."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_fsdp_wrapped_module"), name)

    def __getitem__(self, key: int) -> Any:
        return self.module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are not shared."""
        yield

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """`torch.nn.utils.clip_grad_norm_` over all shares."""
        return nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(module: nn.Module, recurse: bool = True, writeback: bool = True,
                           rank0_only: bool = False, offload_to_cpu: bool = False,
                           with_grads: bool = False) -> Iterator[None]:
        """Inside, parameters are whole: they always are."""
        yield


__all__ = ["FullyShardedDataParallel", "ShardingStrategy"]
