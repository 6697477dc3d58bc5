"""Which collectives a program makes, and where the pieces of a tensor are."""
from __future__ import annotations

from flambeau.distributed.tensor.debug._comm_mode import CommDebugMode
from flambeau.distributed.tensor.debug._visualize_sharding import visualize_sharding

__all__ = ["CommDebugMode", "visualize_sharding"]


def _clear_sharding_prop_cache() -> None:
    """Forget how calls are carried out."""
    from flambeau.distributed.tensor import DTensor
    DTensor._op_dispatcher.sharding_propagator._known.clear()


_clear_python_sharding_prop_cache = _clear_sharding_prop_cache
