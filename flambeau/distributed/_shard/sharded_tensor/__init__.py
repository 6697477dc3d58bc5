"""Sharded tensors, filled in the ways in which tensors are."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau.distributed._shard.op_registry_utils import _decorator_func
from flambeau.distributed._shard.sharded_tensor.api import (
    _CUSTOM_SHARDED_OPS,
    _SHARDED_OPS,
    ShardedTensor,
    ShardedTensorBase,
    ShardedTensorMetadata,
    TensorProperties,
)
from flambeau.distributed._shard.sharded_tensor.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor.shard import Shard
from flambeau.distributed._shard.sharding_spec import ShardingSpec


def empty(sharding_spec: ShardingSpec, *size: Any, dtype: Any = None,
          layout: Any = flambeau.strided, requires_grad: bool = False, pin_memory: bool = False,
          memory_format: Any = flambeau.contiguous_format, process_group: Any = None,
          init_rrefs: bool = False) -> ShardedTensor:
    """A sharded tensor of any values."""
    return ShardedTensor(sharding_spec, *size, dtype=dtype, layout=layout,
                         requires_grad=requires_grad, pin_memory=pin_memory,
                         memory_format=memory_format, process_group=process_group,
                         init_rrefs=init_rrefs)


def _filled(sharding_spec: ShardingSpec, size: tuple[Any, ...], fill: Callable[[Any], Any],
            options: dict[str, Any]) -> ShardedTensor:
    made = ShardedTensor(sharding_spec, *size, **options)
    with flambeau.no_grad():
        for shard in made.local_shards():
            fill(shard.tensor)
    return made


def ones(sharding_spec: ShardingSpec, *size: Any, dtype: Any = None,
         layout: Any = flambeau.strided, requires_grad: bool = False, pin_memory: bool = False,
         memory_format: Any = flambeau.contiguous_format, process_group: Any = None,
         init_rrefs: bool = False) -> ShardedTensor:
    """A sharded tensor of ones."""
    return full(sharding_spec, size, 1, dtype=dtype, layout=layout, requires_grad=requires_grad,
                pin_memory=pin_memory, memory_format=memory_format, process_group=process_group,
                init_rrefs=init_rrefs)


def zeros(sharding_spec: ShardingSpec, *size: Any, dtype: Any = None,
          layout: Any = flambeau.strided, requires_grad: bool = False, pin_memory: bool = False,
          memory_format: Any = flambeau.contiguous_format, process_group: Any = None,
          init_rrefs: bool = False) -> ShardedTensor:
    """A sharded tensor of zeros."""
    return full(sharding_spec, size, 0, dtype=dtype, layout=layout, requires_grad=requires_grad,
                pin_memory=pin_memory, memory_format=memory_format, process_group=process_group,
                init_rrefs=init_rrefs)


def full(sharding_spec: ShardingSpec, size: Any, fill_value: Any, *, dtype: Any = None,
         layout: Any = flambeau.strided, requires_grad: bool = False, pin_memory: bool = False,
         memory_format: Any = flambeau.contiguous_format, process_group: Any = None,
         init_rrefs: bool = False) -> ShardedTensor:
    """A sharded tensor of one value."""
    return _filled(sharding_spec, tuple(size), lambda x: x.fill_(fill_value), {
        "dtype": dtype, "layout": layout, "requires_grad": requires_grad,
        "pin_memory": pin_memory, "memory_format": memory_format, "process_group": process_group,
        "init_rrefs": init_rrefs})


def rand(sharding_spec: ShardingSpec, *size: Any, dtype: Any = None,
         layout: Any = flambeau.strided, requires_grad: bool = False, pin_memory: bool = False,
         memory_format: Any = flambeau.contiguous_format, process_group: Any = None,
         init_rrefs: bool = False) -> ShardedTensor:
    """A sharded tensor of random numbers in [0, 1)."""
    return _filled(sharding_spec, size, lambda x: x.uniform_(), {
        "dtype": dtype, "layout": layout, "requires_grad": requires_grad,
        "pin_memory": pin_memory, "memory_format": memory_format, "process_group": process_group,
        "init_rrefs": init_rrefs})


def randn(sharding_spec: ShardingSpec, *size: Any, dtype: Any = None,
          layout: Any = flambeau.strided, requires_grad: bool = False, pin_memory: bool = False,
          memory_format: Any = flambeau.contiguous_format, process_group: Any = None,
          init_rrefs: bool = False) -> ShardedTensor:
    """A sharded tensor of normal random numbers."""
    return _filled(sharding_spec, size, lambda x: x.normal_(), {
        "dtype": dtype, "layout": layout, "requires_grad": requires_grad,
        "pin_memory": pin_memory, "memory_format": memory_format, "process_group": process_group,
        "init_rrefs": init_rrefs})


def init_from_local_shards(local_shards: list[Shard], *global_size: Any,
                           process_group: Any = None, init_rrefs: bool = False) -> ShardedTensor:
    """The sharded tensor of this size whose pieces the processes give."""
    return ShardedTensor._init_from_local_shards(local_shards, *global_size,
                                                 process_group=process_group,
                                                 init_rrefs=init_rrefs)


# ---- state dicts --------------------------------------------------------------------------------

def state_dict_hook(module: Any, destination: dict[str, Any], prefix: str,
                    local_metadata: Any) -> None:
    """A hook of modules: attributes that are sharded tensors are in their state dicts."""
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, ShardedTensor):
                destination[prefix + path + ("." if path else "") + name] = value


def pre_load_state_dict_hook(module: Any, state_dict: dict[str, Any], prefix: str,
                             local_metadata: Any, strict: bool, missing_keys: list[str],
                             unexpected_keys: list[str], error_msgs: list[str]) -> None:
    """A hook of modules: attributes that are sharded tensors are set from state dicts."""
    for path, part in module.named_modules():
        for name in vars(part):
            key = prefix + path + ("." if path else "") + name
            if key in state_dict and isinstance(state_dict[key], ShardedTensor):
                setattr(part, name, state_dict[key])


# ---- ops ----------------------------------------------------------------------------------------

def custom_sharded_op_impl(func: Callable[..., Any]) -> Any:
    """A decorator: the function stands for an op on sharded tensors.

    >>> @custom_sharded_op_impl(flambeau.nn.functional.linear)                # doctest: +SKIP
    ... def linear(types, args, kwargs, process_group):
    ...     ...
    """
    return functools.partial(_decorator_func, op=func, op_table=_CUSTOM_SHARDED_OPS)


def _sharded_op_impl(func: Callable[..., Any]) -> Any:
    """The same, where users may put theirs in its place."""
    return functools.partial(_decorator_func, op=func, op_table=_SHARDED_OPS)


from flambeau.distributed._shard.sharded_tensor._ops import (
    allclose,
    constant_,
    equal,
    kaiming_uniform_,
    normal_,
    uniform_,
)
