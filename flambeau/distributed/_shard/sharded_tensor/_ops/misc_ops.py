"""What parameters of modules ask of tensors."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.distributed._shard.sharded_tensor import _sharded_op_impl


@_sharded_op_impl(flambeau._has_compatible_shallow_copy_type)
def tensor_has_compatible_shallow_copy_type(types: Any, args: Any = (), kwargs: Any = None,
                                            pg: Any = None) -> bool:
    """No: a sharded tensor takes the place of another whole."""
    return False
