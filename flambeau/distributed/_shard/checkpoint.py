"""The older place of `flambeau.distributed.checkpoint`."""
import warnings

import flambeau.distributed.checkpoint as _checkpoint
from flambeau._support.lazy.modules import alias

warnings.warn("`torch.distributed._shard.checkpoint` will be deprecated, use "
              "`torch.distributed.checkpoint` instead", DeprecationWarning, stacklevel=2)

alias(__name__, _checkpoint.__name__, (
    "api", "default_planner", "filesystem", "metadata", "planner", "planner_helpers",
    "resharding", "state_dict_loader", "state_dict_saver", "storage", "utils"))
