"""What parameters of modules ask of tensors."""
from __future__ import annotations

from typing import Any


def tensor_has_compatible_shallow_copy_type(types: Any, args: Any = (), kwargs: Any = None,
                                            pg: Any = None) -> bool:
    """No: a sharded tensor takes the place of another whole."""
    return False
