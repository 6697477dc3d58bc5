"""`ShardedGradScaler`: a gradient scaler whose processes agree on overflows."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.amp.grad_scaler import GradScaler
from flambeau.distributed import distributed_c10d as dist

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A `GradScaler` for processes that have a share each of the gradients.

    A step is left out where any process has met an overflow. `process_group` are those that
    have shares, by default all.
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0 ** 16,
                 backoff_factor: float = 0.5, growth_factor: float = 2.0,
                 growth_interval: int = 2000, enabled: bool = True, process_group: Any = None):
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval,
                         enabled)
        if self._enabled:
            self.process_group = process_group

    def _unscale_grads_(self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor,
                        allow_fp16: bool = True) -> dict[Any, Tensor]:
        """Divide this process's gradients, float16 ones too, and tell all of overflows."""
        found = super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16=True)
        if dist.is_initialized() and dist.get_world_size(self.process_group) > 1:
            # A process without gradients takes part all the same.
            overflow = found.setdefault(inv_scale.device, found_inf.clone())
            dist.all_reduce(overflow, group=self.process_group)
        return found
