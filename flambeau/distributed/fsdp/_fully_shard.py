"""`fully_shard` for one process, which keeps its whole module."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flambeau.distributed import distributed_c10d as dist

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy",
           "fully_shard", "register_fsdp_forward_method"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In which types parameters are used and gradients reduced."""
    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Where parameters wait: where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait in main memory: here they always do."""
    pin_memory: bool = True


class FSDPModule:
    """What modules given to `fully_shard` are, too."""

    def unshard(self, async_op: bool = False) -> None:
        """The parameters are whole: nothing to do."""

    def reshard(self) -> None:
        """The parameters stay whole."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *,
                                   recurse: bool = True) -> None:
        """There is nobody to agree with on gradients."""


def fully_shard(module: Any, *, mesh: Any = None, reshard_after_forward: Any = None,
                shard_placement_fn: Any = None, mp_policy: MixedPrecisionPolicy | None = None,
                offload_policy: OffloadPolicy | None = None, ignored_params: Any = None) -> Any:
    """`module`, of which each process keeps a part: one process keeps it whole.

    >>> isinstance(fully_shard(flambeau.nn.Linear(2, 2)), FSDPModule)
    True
    """
    dist.only_alone("fully_shard")
    types = mp_policy and (mp_policy.param_dtype, mp_policy.reduce_dtype, mp_policy.output_dtype)
    if types and any(types):
        raise NotImplementedError("fully_shard in mixed precision: use torch.autocast")
    for one in module if isinstance(module, (list, tuple)) else (module,):
        cls = type(one)
        if not isinstance(one, FSDPModule):
            one.__class__ = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {})
    return module


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Also `method_name` finds the parameters whole: it does."""
    if not callable(getattr(module, method_name, None)):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
