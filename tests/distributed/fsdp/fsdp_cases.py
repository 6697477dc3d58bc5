"""Small models, wrapped in one process."""
import warnings

from flambeau import nn
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
from flambeau.distributed.fsdp.wrap import ModuleWrapPolicy

BY_LAYER = ModuleWrapPolicy({nn.Sequential})


def wrapped(module, **options):
    """One process shards nothing, and is told so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FSDP(module, **options)


def network():
    return nn.Sequential(nn.Linear(4, 5), nn.Sequential(nn.Linear(5, 3), nn.LayerNorm(3)))
