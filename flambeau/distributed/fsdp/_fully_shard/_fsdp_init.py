"""What a mesh is used for, and which parameters one call of `fully_shard` manages."""
from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.device_mesh import DeviceMesh, init_device_mesh
from flambeau.distributed.fsdp._fully_shard._fsdp_api import DataParallelMeshDims
from flambeau.distributed.fsdp._fully_shard._fsdp_common import (
    DataParallelMeshInfo,
    DDPMeshInfo,
    FSDPMeshInfo,
    HSDPMeshInfo,
    _is_composable_with_fsdp,
)


def _get_mesh_info(mesh: Any,
                   dp_mesh_dims: DataParallelMeshDims | None = None) -> DataParallelMeshInfo:
    """Along which dimensions of a mesh parameters are cut and copied: cut along the only one, or
    copied along the first and cut along the second, unless `dp_mesh_dims` names them."""
    if dp_mesh_dims is None:
        if mesh.ndim not in (1, 2):
            raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
        if mesh.ndim == 1:
            return FSDPMeshInfo(mesh, shard_mesh_dim=0)
        if mesh.mesh_dim_names is None:
            raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
        return HSDPMeshInfo(mesh, shard_mesh_dim=1, replicate_mesh_dim=0)
    cut, copied = (_dimension(mesh, names) for names in (dp_mesh_dims.shard_names,
                                                         dp_mesh_dims.replicate_names))
    options: dict[str, Any] = {"dp_mesh_dims": dp_mesh_dims, "spmd_mesh": mesh}
    if cut and copied:
        return HSDPMeshInfo(DeviceMesh._concatenate([_part(mesh, copied), _part(mesh, cut)]),
                            shard_mesh_dim=1, replicate_mesh_dim=0, **options)
    if cut:
        return FSDPMeshInfo(_part(mesh, cut), shard_mesh_dim=0, **options)
    return DDPMeshInfo(_part(mesh, copied), replicate_mesh_dim=0, **options)


def _part(mesh: Any, name: str) -> Any:
    """The part along one dimension, or along several that are one."""
    return mesh[name] if name in mesh.mesh_dim_names else \
        mesh._get_root_mesh()._flatten_mapping[name]


def _dimension(mesh: Any, names: tuple[str, ...]) -> str | None:
    """One dimension of these names; several become one."""
    if not names:
        return None
    for name in names:
        if name not in (mesh.mesh_dim_names or ()):
            raise ValueError(f"{name!r} is no dimension of the mesh {mesh}")
    if len(names) == 1:
        return names[0]
    flat = mesh[names]._flatten()
    return flat.mesh_dim_names[0]


def _init_default_mesh() -> DeviceMesh:
    """All processes, in a row."""
    if not dist.is_initialized():
        dist.init_process_group()
    return init_device_mesh("cpu", (dist.get_world_size(),))


def _get_post_forward_mesh_info(reshard_after_forward: bool | int,
                                mesh_info: FSDPMeshInfo) -> FSDPMeshInfo | None:
    """Among which processes parameters are cut after a forward pass; None: they stay whole."""
    count = mesh_info.shard_mesh_size
    if not isinstance(reshard_after_forward, (bool, int)):
        raise ValueError("reshard_after_forward should be a bool or an int representing the "
                         f"group size to reshard to, not {reshard_after_forward}")
    if isinstance(reshard_after_forward, bool):
        return mesh_info if reshard_after_forward else None
    if reshard_after_forward < 1 or count % reshard_after_forward:
        raise ValueError("If passing reshard_after_forward as an int, it should be a factor of "
                         f"{count}, not {reshard_after_forward}")
    if reshard_after_forward == 1:
        logging.getLogger(__name__).warning(
            "reshard_after_forward=1 (int) means resharding parameters to world size 1, instead "
            "of reshard_after_forward=True (bool)")
        return None
    if reshard_after_forward == count:
        return mesh_info
    ranks = mesh_info.mesh.mesh.view(-1, reshard_after_forward)
    return HSDPMeshInfo(DeviceMesh(mesh_info.mesh.device_type, ranks), shard_mesh_dim=1,
                        replicate_mesh_dim=0)


# ---- modules and parameters ---------------------------------------------------------------------

def _validate_module(module: nn.Module, func_name: str) -> None:
    """Only modules that are called have passes."""
    if isinstance(module, (nn.ModuleList, nn.ModuleDict)) \
            and type(module).forward in (nn.Module.forward, nn.ModuleList.forward):
        raise ValueError(f"{func_name} does not support containers that do not implement forward: "
                         f"{module}")


def _get_managed_modules(root_modules: Iterable[nn.Module],
                         ignored_params: set[nn.Parameter] | None = None,
                         is_composable_fn: Callable[[nn.Module], bool] = _is_composable_with_fsdp
                         ) -> list[nn.Module]:
    """The modules below, without what `fully_shard` has been applied to before."""
    from flambeau.distributed.fsdp._fully_shard._fsdp_state import _get_module_fsdp_state
    roots = list(root_modules)
    found: dict[nn.Module, None] = {}

    def visit(module: nn.Module) -> None:
        if not is_composable_fn(module) or module in found:
            return
        if module not in roots and _get_module_fsdp_state(module) is not None:
            return
        for inner in module.children():
            visit(inner)
        found[module] = None
    for root in roots:
        visit(root)
    return list(found)


def _verify_managed_param(name: str, param: nn.Parameter) -> None:
    if param.ndim == 0:
        raise ValueError("fully_shard doesn't support scalar parameters. Change "
                         f"{name} to a 1D tensor with numel equal to 1.")


def _get_managed_states(modules: Iterable[nn.Module],
                        ignored_params: set[nn.Parameter] | None = None
                        ) -> tuple[list[nn.Parameter], list[Tensor]]:
    """Their parameters and buffers, each once."""
    ignored = ignored_params or set()
    params: dict[nn.Parameter, None] = {}
    buffers: dict[Tensor, None] = {}
    for module in modules:
        for name, param in module.named_parameters(recurse=False):
            if param not in ignored:
                if getattr(module, "_is_fsdp_managed_module", False):
                    raise RuntimeError("fully_shard has been applied to a module that contains "
                                       f"{module}: apply it to inner modules before outer ones")
                _verify_managed_param(name, param)
                params[param] = None
        buffers.update(dict.fromkeys(module.buffers(recurse=False)))
    return list(params), list(buffers)


def _get_device_from_mesh(mesh: DeviceMesh) -> flambeau.device:
    """The device on which a mesh's processes compute."""
    return flambeau.device(mesh.device_type)
