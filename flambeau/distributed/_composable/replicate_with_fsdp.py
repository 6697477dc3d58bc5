"""`replicate` by the means of `fully_shard`: each process has all parameters, as `DTensor`s."""
from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.distributed._composable.contract import _get_registry, contract
from flambeau.distributed.fsdp._fully_shard._fsdp_api import (
    DataParallelMeshDims,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from flambeau.distributed.fsdp._fully_shard._fsdp_common import DDPMeshInfo
from flambeau.distributed.fsdp._fully_shard._fsdp_init import (
    _get_device_from_mesh,
    _get_mesh_info,
    _init_default_mesh,
)
from flambeau.distributed.fsdp._fully_shard._fsdp_init import _validate_module as _validate
from flambeau.distributed.fsdp._fully_shard._fsdp_state import FSDPState, FSDPStateContext
from flambeau.distributed.fsdp._fully_shard._fully_shard import FSDPModule, _shard_modules

cls_to_replicate_cls: dict[type, type] = {}


class _ReplicateStateContext(FSDPStateContext):
    """What all modules below one root share."""


class _ReplicateState(FSDPState):
    """The state of one `replicate`."""

    _state_name = "Replicate"


class ReplicateModule(FSDPModule):
    """What modules are, too, to which `replicate` has been applied."""

    _orig_cls_mro_index = 3


def is_composable_with_replicate(module: nn.Module) -> bool:
    """Has `fully_shard` not been applied to it?"""
    registry = _get_registry(module)
    return registry is None or "fully_shard" not in registry


def _get_module_replicate_state(module: nn.Module) -> _ReplicateState | None:
    """What `replicate` knows of a module; None if it has not been applied."""
    from flambeau.distributed._composable_state import _get_module_state
    state = _get_module_state(module)
    return state if isinstance(state, _ReplicateState) else None


def _validate_module(module: nn.Module) -> None:
    if not is_composable_with_replicate(module):
        raise RuntimeError("Cannot apply `replicate()` on a Module already managed by "
                           "`fully_shard`")
    _validate(module, "replicate")


def _validate_mesh(mesh: Any) -> None:
    if mesh.ndim != 1:
        raise ValueError(f"replicate expects a 1D DeviceMesh but got {mesh}")


@contract(state_cls=_ReplicateState)
def replicate(module: nn.Module, *, mesh: Any = None,
              mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),
              offload_policy: OffloadPolicy = OffloadPolicy(),
              ignored_params: set[nn.Parameter] | None = None,
              dp_mesh_dims: DataParallelMeshDims | None = None) -> nn.Module:
    """`module`, of which each process keeps all parameters; their gradients are averaged.

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> layer = replicate(nn.Linear(2, 1))
    >>> layer(flambeau.ones(1, 2)).sum().backward()
    >>> layer.weight.grad.placements
    (Replicate(),)
    >>> dist.destroy_process_group()
    """
    _validate_module(module)
    mesh = mesh or _init_default_mesh()
    if dp_mesh_dims is None:
        _validate_mesh(mesh)
        info: Any = DDPMeshInfo(mesh, replicate_mesh_dim=0)
    else:
        info = _get_mesh_info(mesh, dp_mesh_dims)
    arguments = (info, None, _get_device_from_mesh(mesh), None, mp_policy, offload_policy)
    _shard_modules(replicate.state, module, False, ignored_params, arguments,
                   (cls_to_replicate_cls, ReplicateModule, "Replicate"),
                   is_composable_fn=is_composable_with_replicate)
    return module
