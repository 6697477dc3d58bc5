"""Values in short, for messages and logs."""
from __future__ import annotations

from typing import Any

import flambeau

from ...fx.node import map_aggregate


def friendly_debug_info(v: object) -> Any:
    """Shape, dtype and whether it needs a gradient, for a tensor; for all else its string."""
    if isinstance(v, flambeau.Tensor):
        return f"Tensor({v.shape}, grad={v.requires_grad}, dtype={v.dtype})"
    return str(v)


def map_debug_info(a: Any) -> Any:
    """The same structure with `friendly_debug_info` of each value."""
    return map_aggregate(a, friendly_debug_info)
