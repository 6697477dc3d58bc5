"""Copies, and what is known without values."""
from __future__ import annotations

import copy
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed._shard.common_op_utils import _register_default_op
from flambeau.distributed._shard.sharded_tensor import Shard, ShardedTensor, _sharded_op_impl
from flambeau.distributed._shard.sharded_tensor._ops._common import (
    _register_sharded_op_on_local_shards,
)

for _op in (Tensor.shape.__get__, Tensor.dtype.__get__, Tensor.layout.__get__, Tensor.size,
            Tensor.dim, Tensor.ndim.__get__, Tensor.is_contiguous, Tensor.contiguous,
            Tensor.is_floating_point, Tensor.requires_grad.__get__, Tensor.grad.__get__,
            Tensor.grad_fn.__get__, Tensor.is_leaf.__get__):
    _register_default_op(_op, _sharded_op_impl)


@_sharded_op_impl(Tensor.device.__get__)
def tensor_device(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None
                  ) -> flambeau.device:
    """The device of the pieces here; without any, the CPU."""
    shards = args[0].local_shards()
    return shards[0].tensor.device if shards else flambeau.device("cpu")


@_sharded_op_impl(Tensor.is_meta.__get__)
def st_is_meta(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None) -> bool:
    """Have the pieces no values?"""
    shards = args[0].local_shards()
    return bool(shards) and shards[0].tensor.is_meta


@_sharded_op_impl(Tensor.is_pinned)
def is_pinned(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None) -> bool:
    """No: there is no GPU to pin memory for."""
    return args[0].metadata().tensor_properties.pin_memory


def sharded_type_as_check(*args: Any, **kwargs: Any) -> None:
    """Raise unless there are two tensors."""
    if len(args) < 2:
        raise ValueError("Needs to give a tensor to cast type as!")
    if not isinstance(args[1], (Tensor, ShardedTensor)):
        raise ValueError("Needs to give a Tensor or ShardedTensor to cast type as!")


def same_dtype(*args: Any, **kwargs: Any) -> bool:
    """Have both tensors one type?"""
    return args[0].dtype == args[1].dtype


def sharded_type_as(args: Any, kwargs: Any, pg: Any) -> tuple[list[Shard], Any]:
    """The pieces in the type of another tensor."""
    this, other = args[0], args[1]
    dtype = other.local_shards()[0].tensor.dtype if isinstance(other, ShardedTensor) \
        else other.dtype
    about = copy.deepcopy(this.metadata())
    about.tensor_properties.dtype = dtype
    return [Shard(shard.tensor.to(dtype), shard.metadata) for shard in this.local_shards()], about


_register_sharded_op_on_local_shards(Tensor.type_as, early_stop_func=same_dtype,
                                     extra_check=sharded_type_as_check,
                                     customized_func=sharded_type_as)


def sharded_deepcopy(args: Any, kwargs: Any, pg: Any) -> tuple[list[Shard], Any]:
    """Copies of the pieces, and of what is known of them."""
    this = args[0]
    return copy.deepcopy(this.local_shards()), copy.deepcopy(this.metadata())


_register_sharded_op_on_local_shards(Tensor.__deepcopy__, customized_func=sharded_deepcopy)


@_sharded_op_impl(Tensor.copy_)
def sharded_inplace_copy(types: Any, args: Any, kwargs: Any, pg: Any) -> ShardedTensor:
    """Put the values of another sharded tensor into this one."""
    kwargs = kwargs or {}
    this, other = args[0], args[1]
    non_blocking = kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
    for shard, source in zip(this.local_shards(), other.local_shards()):
        if shard.metadata != source.metadata:
            raise RuntimeError("inplace copy can only happen between two ShardedTensor with same "
                               "metadata!")
    for shard, source in zip(this.local_shards(), other.local_shards()):
        shard.tensor.copy_(source.tensor, non_blocking)
    return this


def sharded_clone(args: Any, kwargs: Any, pg: Any) -> tuple[list[Shard], Any]:
    """Copies of the pieces."""
    this = args[0]
    desired = (kwargs or {}).get("memory_format")
    if desired and desired != flambeau.preserve_format:
        raise RuntimeError("Only support torch.preserve_format for ShardedTensor!")
    shards = [Shard(shard.tensor.clone(), copy.deepcopy(shard.metadata))
              for shard in this.local_shards()]
    return shards, copy.deepcopy(this.metadata())


_register_sharded_op_on_local_shards(Tensor.clone, customized_func=sharded_clone)


def sharded_detach(args: Any, kwargs: Any, pg: Any) -> tuple[list[Shard], Any]:
    """The pieces, outside of the graph."""
    this = args[0]
    shards = [Shard(shard.tensor.detach(), copy.deepcopy(shard.metadata))
              for shard in this.local_shards()]
    about = copy.deepcopy(this.metadata())
    about.tensor_properties.requires_grad = False
    return shards, about


_register_sharded_op_on_local_shards(Tensor.detach, customized_func=sharded_detach)


@_sharded_op_impl(Tensor.requires_grad_)
def tensor_requires_grad_set(types: Any, args: Any = (), kwargs: Any = None, pg: Any = None
                             ) -> ShardedTensor:
    """Let the pieces require gradients, or not."""
    this = args[0]
    wanted = (kwargs or {}).get("requires_grad", args[1] if len(args) > 1 else True)
    if wanted == this.requires_grad:
        return this
    for shard in this.local_shards():
        shard.tensor.requires_grad_(wanted)
    with flambeau._C.DisableTorchFunctionSubclass():
        this.requires_grad_(wanted)
    this._metadata.tensor_properties.requires_grad = wanted
    return this
