"""Sharded tensors, filled in the ways in which tensors are."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
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


def _filled(name: str, fill: Callable[[Tensor], Any], doc: str) -> Callable[..., ShardedTensor]:
    def make(sharding_spec: ShardingSpec, *size: Any, dtype: Any = None,
             layout: Any = flambeau.strided, requires_grad: bool = False, pin_memory: bool = False,
             memory_format: Any = flambeau.contiguous_format, process_group: Any = None,
             init_rrefs: bool = False) -> ShardedTensor:
        made = empty(sharding_spec, *size, dtype=dtype, layout=layout,
                     requires_grad=requires_grad, pin_memory=pin_memory,
                     memory_format=memory_format, process_group=process_group,
                     init_rrefs=init_rrefs)
        with flambeau.no_grad():
            for shard in made.local_shards():
                fill(shard.tensor)
        return made
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A sharded tensor of {doc}."
    return make


ones = _filled("ones", lambda x: x.fill_(1), "ones")
zeros = _filled("zeros", lambda x: x.fill_(0), "zeros")
rand = _filled("rand", lambda x: x.uniform_(), "random numbers in [0, 1)")
randn = _filled("randn", lambda x: x.normal_(), "normal random numbers")


def full(sharding_spec: ShardingSpec, size: Any, fill_value: Any, *, dtype: Any = None,
         layout: Any = flambeau.strided, requires_grad: bool = False, pin_memory: bool = False,
         memory_format: Any = flambeau.contiguous_format, process_group: Any = None,
         init_rrefs: bool = False) -> ShardedTensor:
    """A sharded tensor of one value."""
    return _filled("full", lambda x: x.fill_(fill_value), "one value")(
        sharding_spec, *size, dtype=dtype, layout=layout, requires_grad=requires_grad,
        pin_memory=pin_memory, memory_format=memory_format, process_group=process_group,
        init_rrefs=init_rrefs)


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
