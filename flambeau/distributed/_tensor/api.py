"""The older name of `flambeau.distributed.tensor._api`."""
from flambeau.distributed.tensor._api import DTensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
