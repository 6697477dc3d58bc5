"""The older name of `_shard.sharding_spec`."""
# ruff: noqa: F403
import warnings

from flambeau.distributed._shard.sharding_spec import *

warnings.warn("`torch.distributed._sharding_spec` will be deprecated, use "
              "`torch.distributed._shard.sharding_spec` instead", DeprecationWarning,
              stacklevel=2)
