"""Sharded tensors: pieces of a tensor at several processes (`DTensor` is newer)."""
from flambeau.distributed._shard.api import (
    _shard_tensor,
    load_with_process_group,
    shard_module,
    shard_parameter,
)
