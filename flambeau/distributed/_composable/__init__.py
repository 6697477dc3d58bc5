"""Functions that change modules in place."""
from flambeau.distributed.fsdp import fully_shard

__all__ = ["fully_shard"]
