"""What ops on sharded tensors share."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau.utils import _pytree


def _basic_validation(op: Any, args: Any = (), kwargs: Any = None) -> None:
    """Raise unless there is a sharded tensor, and all are of one process group."""
    from flambeau.distributed._shard.sharded_tensor import ShardedTensor
    if not args and not kwargs:
        raise ValueError(f" No input for '{op.__name__}'!")
    groups = [x._process_group for x in _pytree.tree_leaves((args, kwargs or {}))
              if isinstance(x, ShardedTensor)]
    if not groups:
        raise TypeError(f"torch function '{op.__name__}', with args: {args} and kwargs: {kwargs} "
                        "are called without any distributed tensor!")
    if any(group is not groups[0] for group in groups):
        raise RuntimeError("All distributed tensors should use the same ProcessGroup if used "
                           "together in an op.")


def _register_default_op(op: Any, decorator: Callable[[Any], Any]) -> None:
    """Let an op that needs no values be that of tensors."""
    @decorator(op)
    def tensor_default_op(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None) -> Any:
        with flambeau._C.DisableTorchFunctionSubclass():
            return op(*args, **(kwargs or {}))
