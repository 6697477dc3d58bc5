"""The processes among which parameters are cut, and copied."""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import flambeau
from flambeau.distributed._composable.contract import _get_registry
from flambeau.distributed.fsdp._fully_shard._fsdp_api import DataParallelMeshDims


class TrainingState(Enum):
    """What a module is doing."""
    FORWARD = auto()
    PRE_BACKWARD = auto()
    POST_BACKWARD = auto()
    IDLE = auto()


@dataclass
class DataParallelMeshInfo:
    """A mesh, and along which of its dimensions parameters are cut and copied."""
    mesh: Any
    shard_mesh_dim: int | None = None
    replicate_mesh_dim: int | None = None
    dp_mesh_dims: DataParallelMeshDims | None = None
    spmd_mesh: Any = None
    is_spmd_mesh: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.is_spmd_mesh = self.spmd_mesh is not None
        if self.shard_mesh_dim is None and self.replicate_mesh_dim is None:
            raise AssertionError("At least one of shard_mesh_dim and replicate_mesh_dim must not "
                                 "be None")


@dataclass
class FSDPMeshInfo(DataParallelMeshInfo):
    """One along which parameters are cut."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shard_mesh_dim is None:
            raise AssertionError("Expects non-None shard_mesh_dim")
        self.shard_mesh_size: int = self.mesh.size(self.shard_mesh_dim)
        self.shard_process_group = self.mesh.get_group(self.shard_mesh_dim)
        self.shard_mesh_rank: int = self.shard_process_group.rank()


@dataclass
class DDPMeshInfo(DataParallelMeshInfo):
    """One along which they are copied."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replicate_mesh_dim is None:
            raise AssertionError("Expects non-None replicate_mesh_dim")
        self.replicate_mesh_size: int = self.mesh.size(self.replicate_mesh_dim)
        self.replicate_process_group = self.mesh.get_group(self.replicate_mesh_dim)
        self.replicate_mesh_rank: int = self.replicate_process_group.rank()


@dataclass
class HSDPMeshInfo(FSDPMeshInfo, DDPMeshInfo):
    """One along which they are cut, and along which they are copied."""

    def __post_init__(self) -> None:
        super().__post_init__()


@dataclass
class ShardPlacementResult:
    """Along which dimension a parameter is cut, and among which processes."""
    placement: Any
    mesh_info: FSDPMeshInfo


ShardPlacementFnResult = Any        # a `Shard`, a `ShardPlacementResult`, or None


def resolve_shard_placement(result: ShardPlacementFnResult,
                            default_mesh_info: FSDPMeshInfo) -> ShardPlacementResult:
    """What a function that places parameters has said, with what it has left out."""
    if isinstance(result, ShardPlacementResult):
        return result
    return ShardPlacementResult(result, default_mesh_info)


def _is_composable_with_fsdp(module: Any) -> bool:
    """Does nothing that has been applied to a module share its gradients already?"""
    registry = _get_registry(module)
    return registry is None or "replicate" not in registry


def _cast_fp_tensor(dtype: flambeau.dtype, x: Any) -> Any:
    """A floating-point tensor in another type; anything else as it is."""
    if isinstance(x, flambeau.Tensor) and x.is_floating_point() and x.dtype is not dtype:
        return x.to(dtype)
    return x


def _to_dtype_if_needed(tensor: flambeau.Tensor, dtype: flambeau.dtype | None) -> flambeau.Tensor:
    return tensor if dtype is None or tensor.dtype is dtype else tensor.to(dtype)


def _get_dim0_padded_size(tensor_size: Any, dim0_factor: int) -> flambeau.Size:
    """A shape whose first dimension is a multiple of a number."""
    return flambeau.Size([-(-tensor_size[0] // dim0_factor) * dim0_factor, *tensor_size[1:]])


def _chunk_with_empty(tensor: flambeau.Tensor, num_chunks: int, dim: int) -> list[flambeau.Tensor]:
    """As many pieces as asked for, the last of them maybe empty."""
    from flambeau.distributed.tensor.placement_types import _pieces
    return _pieces(tensor, num_chunks, dim)
