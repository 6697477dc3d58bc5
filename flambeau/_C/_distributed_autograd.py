"""Distributed autograd by the names of PyTorch's extension."""
from __future__ import annotations

from flambeau.distributed.autograd import (
    DistAutogradContext,
    _current_context,
    _get_debug_info,
    _get_max_id,
    _init,
    _is_valid_context,
    _new_context,
    _release_context,
    _retrieve_context,
    backward,
    get_gradients,
)

__all__ = ["DistAutogradContext", "_current_context", "_get_debug_info", "_get_max_id", "_init",
           "_is_valid_context", "_new_context", "_release_context", "_retrieve_context",
           "backward", "get_gradients"]
