"""First values of sharded tensors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau.distributed._shard import sharded_tensor
from flambeau.distributed._shard.sharded_tensor import ShardedTensor, _sharded_op_impl


def validate_param(param: Any, param_name: str) -> None:
    """Raise if an argument is missing."""
    if param is None:
        raise ValueError(f"param: {param_name} shouldn't be None!")


def _fill(init: Callable[..., Any], names: tuple[str, ...], args: Any, kwargs: Any) -> Any:
    """Call an initializer on every piece."""
    kwargs = dict(kwargs or {})
    this = kwargs.pop("tensor", args[0] if args else None)
    validate_param(this, "tensor")
    kwargs.update(zip(names, args[1:]))
    for shard in this.local_shards():
        init(shard.tensor, **kwargs)
    return this


@_sharded_op_impl(flambeau.nn.init.uniform_)
def uniform_(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None) -> ShardedTensor:
    """Uniform random numbers."""
    return _fill(flambeau.nn.init.uniform_, ("a", "b"), args, kwargs)


@_sharded_op_impl(flambeau.nn.init.normal_)
def normal_(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None) -> ShardedTensor:
    """Normal random numbers."""
    return _fill(flambeau.nn.init.normal_, ("mean", "std"), args, kwargs)


@_sharded_op_impl(flambeau.nn.init.kaiming_uniform_)
def kaiming_uniform_(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None
                     ) -> ShardedTensor:
    """Uniform random numbers in the interval of He et al."""
    return _fill(flambeau.nn.init.kaiming_uniform_, ("a", "mode", "nonlinearity"), args, kwargs)


@_sharded_op_impl(flambeau.nn.init.constant_)
def constant_(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None) -> ShardedTensor:
    """One value."""
    return _fill(flambeau.nn.init.constant_, ("val",), args, kwargs)


tensor_like_creation_op_map = {
    getattr(flambeau, f"{name}_like"): getattr(sharded_tensor, name)
    for name in ("full", "empty", "zeros", "ones", "rand", "randn")}


def register_tensor_creation_op(op: Callable[..., Any]) -> None:
    """Let `op`, such as `zeros_like`, make sharded tensors of sharded ones."""
    @_sharded_op_impl(op)
    def tensor_creation_op(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None) -> Any:
        creation = tensor_like_creation_op_map.get(op)
        if creation is None:
            raise RuntimeError(f"Tensor creation {op} not supported!")
        options, this = dict(kwargs or {}), args[0]
        if op is flambeau.full_like and "fill_value" not in options:
            options["fill_value"] = args[1]
        for name in ("device", "memory_format"):
            options.pop(name, None)
        options.setdefault("dtype", this.dtype)
        size = (this.size(),) if op is not flambeau.full_like else ()
        if op is flambeau.full_like:
            options["size"] = this.size()
        return creation(this.sharding_spec(), *size, process_group=pg, **options)


for _op in tensor_like_creation_op_map:
    register_tensor_creation_op(_op)
