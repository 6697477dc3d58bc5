"""`fully_shard` for one process, which keeps its whole module."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.fsdp._fully_shard._fsdp_api import (
    DataParallelMeshDims,
    MixedPrecisionPolicy,
    OffloadPolicy,
)


class UnshardHandle:
    """What `FSDPModule.unshard(async_op=True)` gives: to be waited for."""

    def wait(self) -> None:
        """The parameters are whole now."""


class FSDPModule:
    """What modules given to `fully_shard` are, too. With one process parameters are whole and
    gradients nobody else's, so what is set here makes no difference."""

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Have whole parameters."""
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Keep what is this process's share: everything."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *,
                                   recurse: bool = True) -> None:
        """Are gradients shared with the other processes? There are none."""

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Is the next backward pass the last before a step?"""

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Are gradients shared among copies?"""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Are whole parameters given back after a forward pass?"""

    def set_reshard_after_backward(self, reshard_after_backward: bool, *,
                                   recurse: bool = True) -> None:
        """Are they given back after a backward pass?"""

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Whose parameters are gathered early in a forward pass."""

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Whose parameters are gathered early in a backward pass."""

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Are parameters gathered for backward passes?"""


def fully_shard(module: Any, *, mesh: Any = None,
                reshard_after_forward: bool | int | None = None,
                shard_placement_fn: Callable[..., Any] | None = None,
                mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),
                offload_policy: OffloadPolicy = OffloadPolicy(),
                ignored_params: Any = None,
                dp_mesh_dims: DataParallelMeshDims | None = None) -> Any:
    """`module`, of which each process keeps a part: one process keeps it whole.

    `FullyShardedDataParallel` shards over several processes.

    >>> isinstance(fully_shard(flambeau.nn.Linear(2, 2)), FSDPModule)
    True
    """
    dist.only_alone("fully_shard")
    if mp_policy.param_dtype or mp_policy.reduce_dtype or mp_policy.output_dtype:
        raise NotImplementedError("fully_shard in mixed precision: use torch.autocast")
    for one in module if isinstance(module, (list, tuple)) else (module,):
        cls = type(one)
        if not isinstance(one, FSDPModule):
            one.__class__ = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {})
    return module


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Also `method_name` finds the parameters whole: it does."""
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")


def share_comm_ctx(modules: list[FSDPModule]) -> None:
    """Let modules wait for each other's messages: there are none."""
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {module}")
