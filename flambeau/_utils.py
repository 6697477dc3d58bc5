"""Functions that checkpoints name, and small ones that libraries take from here."""
from __future__ import annotations

from typing import Any

from flambeau import _checkpoint_names as _names

__all__: list[str] = []

_rebuild_tensor = _names.rebuild_tensor
_rebuild_tensor_v2 = _names.rebuild_tensor_v2
_rebuild_tensor_v3 = _names.rebuild_tensor_v3
_rebuild_parameter = _names.rebuild_parameter
_rebuild_parameter_with_state = _names.rebuild_parameter_with_state
_rebuild_sparse_tensor = _names.rebuild_sparse_tensor


def _element_size(dtype: Any) -> int:
    """The bytes of an element."""
    return dtype.itemsize
