"""Functions that change modules in place."""
from typing import Any

from flambeau.distributed._composable.checkpoint_activation import checkpoint
from flambeau.distributed._composable.contract import _get_registry, contract
from flambeau.distributed._composable.replicate import replicate

__all__ = ["checkpoint", "contract", "fully_shard", "replicate"]


def __getattr__(name: str) -> Any:
    if name == "fully_shard":               # which needs `contract` itself
        from flambeau.distributed.fsdp import fully_shard
        return fully_shard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
