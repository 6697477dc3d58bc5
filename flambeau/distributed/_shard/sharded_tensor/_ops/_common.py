"""Ops that do the same to every piece."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.distributed._shard.common_op_utils import _basic_validation
from flambeau.distributed._shard.sharded_tensor import Shard, ShardedTensor, _sharded_op_impl


def _sharded_op_common(op: Any, early_stop_func: Any, extra_check: Any) -> Any:
    """A decorator: checks, and `early_stop_func(*args)` that makes the tensor its own result."""
    def decorator_sharded_func(wrapped_func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(wrapped_func)
        def wrapper(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None) -> Any:
            _basic_validation(op, args, kwargs)
            kwargs = kwargs or {}
            if extra_check:
                extra_check(*args, **kwargs)
            if early_stop_func and early_stop_func(*args, **kwargs):
                return args[0]
            return wrapped_func(types, args, kwargs, pg)
        return wrapper
    return decorator_sharded_func


def _register_sharded_op_on_local_shards(op: Any, early_stop_func: Any = None,
                                         extra_check: Any = None,
                                         customized_func: Any = None) -> None:
    """Let an op on a sharded tensor be that on its pieces; `customized_func(args, kwargs, pg)`
    gives the new pieces and what is known of them instead."""
    @_sharded_op_impl(op)
    @_sharded_op_common(op, early_stop_func, extra_check)
    def sharded_tensor_op_on_local_shards(types: Any, args: Any = (), kwargs: Any = None,
                                          pg: Any = None) -> Any:
        this: ShardedTensor = args[0]
        about = this.metadata()
        if customized_func:
            shards, about = customized_func(args, kwargs, pg)
        else:
            shards = [Shard(op(shard.tensor, *args[1:], **(kwargs or {})), shard.metadata)
                      for shard in this.local_shards()]
        return ShardedTensor._init_from_local_shards_and_global_metadata(
            shards, about, process_group=pg, init_rrefs=this._init_rrefs,
            sharding_spec=this.sharding_spec())
