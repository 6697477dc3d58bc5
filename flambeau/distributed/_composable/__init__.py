"""Functions that change modules in place."""
from flambeau.distributed._composable.checkpoint_activation import checkpoint
from flambeau.distributed._composable.contract import _get_registry, contract
from flambeau.distributed._composable.replicate import replicate
from flambeau.distributed.fsdp import fully_shard

__all__ = ["checkpoint", "contract", "fully_shard", "replicate"]
