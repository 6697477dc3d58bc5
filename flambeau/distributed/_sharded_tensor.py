"""The older name of `_shard.sharded_tensor`."""
# ruff: noqa: F403
import warnings

from flambeau.distributed._shard.sharded_tensor import *

warnings.warn("`torch.distributed._sharded_tensor` will be deprecated, use "
              "`torch.distributed._shard.sharded_tensor` instead", DeprecationWarning,
              stacklevel=2)
