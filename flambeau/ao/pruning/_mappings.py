"""Which modules of quantised numbers stand for pruned ones."""
from __future__ import annotations

from flambeau import nn


def get_static_sparse_quantized_mapping() -> dict[type[nn.Module], type[nn.Module]]:
    """The sparse modules for networks whose activations have fixed scales."""
    from flambeau.ao.nn.sparse import quantized
    return {nn.Linear: quantized.Linear}


def get_dynamic_sparse_quantized_mapping() -> dict[type[nn.Module], type[nn.Module]]:
    """The sparse modules for networks whose activations are quantised as they come."""
    from flambeau.ao.nn.sparse.quantized import dynamic
    return {nn.Linear: dynamic.Linear}
