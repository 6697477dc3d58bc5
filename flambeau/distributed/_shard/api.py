"""Parameters of modules as sharded tensors."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard.sharded_tensor import ShardedTensor
from flambeau.distributed._shard.sharder import Sharder
from flambeau.distributed._shard.sharding_plan import ShardingPlan
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec, ShardingSpec

_current_process_group: ContextVar[Any] = ContextVar("shard_process_group", default=None)


def _shard_tensor(tensor: Tensor, sharding_spec: ShardingSpec, src_rank: int = 0,
                  process_group: Any = None) -> ShardedTensor:
    """The pieces of the tensor of process `src_rank`; all processes have one of this shape."""
    if not tensor.is_contiguous():
        raise ValueError("input tensor is not a contiguous Tensor")
    group = dist._get_default_group() if process_group is None else process_group
    found: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, (src_rank, sharding_spec), group=group)
    for rank, (source, spec) in enumerate(found):
        if src_rank != source:
            raise ValueError(f"src_rank={src_rank} on rank: {dist.get_rank(group)} does not match "
                             f"with src_rank={source} on rank: {rank}")
        if sharding_spec != spec:
            raise ValueError(f"sharding_spec={sharding_spec} on rank: {dist.get_rank(group)} does "
                             f"not match with sharding_spec={spec} on rank: {rank}")
    return sharding_spec.shard(tensor, src_rank=src_rank, process_group=process_group)


def shard_parameter(module: nn.Module, param_name: str, sharding_spec: ShardingSpec,
                    src_rank: int = 0, process_group: Any = None) -> None:
    """Let a parameter of a module be sharded: the pieces of that of process `src_rank`."""
    if not hasattr(module, param_name):
        raise AttributeError(f"{module._get_name()} has no attribute `{param_name}`")
    tensor = getattr(module, param_name)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Expected {type(module).__name__}.{param_name} to be a Tensor, but found "
                         f"{type(tensor).__name__}")
    if not tensor.is_contiguous():
        raise ValueError(f"param: {param_name} is not a contiguous Tensor")
    sharded = _shard_tensor(tensor, sharding_spec, src_rank, process_group)
    module.register_parameter(param_name, nn.Parameter(sharded))


@contextlib.contextmanager
def load_with_process_group(process_group: Any) -> Iterator[Any]:
    """Inside, sharded tensors are unpickled for this process group."""
    if _current_process_group.get() is not None:
        raise RuntimeError('ProcessGroup already set by previous "load_with_process_group" '
                           "context manager")
    token = _current_process_group.set(process_group)
    try:
        yield process_group
    finally:
        _current_process_group.reset(token)


def _get_current_process_group() -> Any:
    """The process group that sharded tensors are unpickled for."""
    group = _current_process_group.get()
    return dist._get_default_group() if group is None else group


def _reshard_output(module: nn.Module, resharding_spec: ShardingSpec) -> nn.Module:
    """Let a module's output, a sharded tensor, be sharded anew."""
    def hook(_module: nn.Module, _input: Any, output: Any) -> Any:
        if isinstance(output, ShardedTensor):
            return output.reshard(resharding_spec)
        return output
    module.register_forward_hook(hook)
    return module


def _collect_local_shard(module: nn.Module) -> nn.Module:
    """Let a module's output, a sharded tensor, be given as this process's piece; a dimension of
    it that is cut in pieces of one row is left out."""
    def hook(_module: nn.Module, _input: Any, output: Any) -> Any:
        if not isinstance(output, ShardedTensor):
            return output
        local, spec = output.local_tensor(), output._sharding_spec
        if isinstance(spec, ChunkShardingSpec) and local.shape[spec.dim] == 1:
            return local.squeeze(spec.dim)
        return local
    module.register_forward_hook(hook)
    return module


def shard_module(module: nn.Module, plan: ShardingPlan, src_rank: int = 0,
                 process_group: Any = None) -> None:
    """Shard the parameters of a model as a plan says."""
    sharders = [prefix for prefix, how in plan.plan.items() if isinstance(how, Sharder)]
    for name, how in plan.plan.items():
        prefix, _, last = name.rpartition(".")
        if isinstance(how, ShardingSpec):
            for sharder in sharders:
                if not sharder or f"{prefix}.".startswith(f"{sharder}."):
                    raise RuntimeError(
                        f"ShardingPlan is in-valid, trying to shard a parameter: {name}, but "
                        f"there's already a Sharder entry for module {sharder}, parameter sharding "
                        "should not conflict with the submodule tree that a Sharder is working "
                        "with!")
            owner = module.get_submodule(prefix)
            shard_parameter(owner, last, how, src_rank=src_rank, process_group=process_group)
        elif isinstance(how, Sharder):
            if not name:
                raise KeyError("Module path must not be empty for custom sharder!")
            setattr(module.get_submodule(prefix), last, how.shard(module.get_submodule(name)))
        else:
            raise TypeError(f"Only `ShardingSpec` and `Sharder` are supported to shard '{name}'")
    for name, spec in (plan.output_plan or {}).items():
        if not isinstance(spec, ShardingSpec):
            raise TypeError(f"Only `ShardingSpec` is supported as output_plan for '{name}'")
        _reshard_output(module.get_submodule(name), spec)
    for name in plan.return_local_tensor or ():
        _collect_local_shard(module.get_submodule(name))
