"""`DTensorSpec`: the mesh, the placements, and what the whole tensor is like."""
from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import flambeau
from flambeau.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)


class TensorMeta(NamedTuple):
    """Shape, strides and type of a tensor."""
    shape: Any
    stride: tuple[int, ...]
    dtype: Any


class ShardOrderEntry(NamedTuple):
    """A dimension of a tensor, and the dimensions of the mesh that cut it, in that order."""
    tensor_dim: int
    mesh_dims: tuple[int, ...]


ShardOrder = tuple[ShardOrderEntry, ...]


@dataclass(frozen=True, eq=False)
class DTensorSpec:
    """How a tensor lies on a mesh: a placement for each dimension of the mesh."""

    mesh: Any
    placements: tuple[Placement, ...]
    tensor_meta: TensorMeta | None = None
    shard_order: ShardOrder = None
    use_strided_shard_as_shard_order: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.placements, tuple):
            object.__setattr__(self, "placements", tuple(self.placements))
        if self.shard_order is None:
            object.__setattr__(self, "shard_order",
                               self.compute_default_shard_order(self.placements))
        if self.use_strided_shard_as_shard_order is None:
            object.__setattr__(self, "use_strided_shard_as_shard_order",
                               any(isinstance(p, _StridedShard) for p in self.placements))

    @staticmethod
    def compute_default_shard_order(placements: tuple[Placement, ...]) -> ShardOrder:
        """The dimensions of the mesh cut a tensor from left to right."""
        cut: dict[int, list[int]] = {}
        for i, placement in enumerate(placements):
            if isinstance(placement, (Shard, _StridedShard)):
                cut.setdefault(placement.dim, []).append(i)
        return tuple(ShardOrderEntry(dim, tuple(cut[dim])) for dim in sorted(cut))

    @staticmethod
    def is_default_device_order(shard_order: ShardOrder) -> bool:
        """Do the dimensions of the mesh cut a tensor from left to right?"""
        return all(tuple(sorted(entry.mesh_dims)) == entry.mesh_dims for entry in shard_order)

    @staticmethod
    def format_shard_order_str(placements: tuple[Placement, ...],
                               shard_order: ShardOrder | None = None) -> str:
        """The placements in short: `S(0)R`."""
        places = {i: at for entry in shard_order or () if len(entry.mesh_dims) > 1
                  for at, i in enumerate(entry.mesh_dims)}
        return "".join(f"{p}[{places[i]}]" if i in places else str(p)
                       for i, p in enumerate(placements))

    # ---- comparing ------------------------------------------------------------------------------

    def _hash_key(self) -> tuple[Any, ...]:
        meta = self.tensor_meta
        return (self.mesh, self.placements, self.shard_order,
                None if meta is None else (tuple(meta.shape), tuple(meta.stride), meta.dtype))

    def __hash__(self) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash(self._hash_key())
        return found

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DTensorSpec)
                                 and self._hash_key() == other._hash_key())

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_hash"}

    def _check_equals(self, other: object, skip_shapes: bool = False) -> bool:
        if not skip_shapes:
            return self == other
        return isinstance(other, DTensorSpec) and (self.mesh, self.placements) == (
            other.mesh, other.placements)

    def __str__(self) -> str:
        order = self.format_shard_order_str(self.placements, self.shard_order)
        if self.tensor_meta is None:
            return f"Spec(({order}))"
        letters = _LETTERS.get(self.tensor_meta.dtype, str(self.tensor_meta.dtype))
        return f"Spec({letters}{list(self.tensor_meta.shape)}({order}))"

    # ---- what it is -----------------------------------------------------------------------------

    def _meta(self) -> TensorMeta:
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    @property
    def shape(self) -> Any:
        """The shape of the whole."""
        return self._meta().shape

    @property
    def stride(self) -> tuple[int, ...]:
        """The strides of the whole."""
        return self._meta().stride

    @property
    def ndim(self) -> int:
        """The number of dimensions of the whole."""
        return len(self._meta().shape)

    @property
    def device_mesh(self) -> Any:
        """The mesh."""
        return self.mesh

    @property
    def num_shards(self) -> int:
        """Into how many pieces the whole is cut."""
        return prod(self.mesh.size(i) for i, p in enumerate(self.placements) if p.is_shard())

    @property
    def num_shards_map(self) -> list[int]:
        """Into how many pieces each dimension is cut."""
        found = [1] * self.ndim
        for i, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                found[placement.dim] *= self.mesh.size(i)
        return found

    @property
    def dim_map(self) -> list[int]:
        """The dimension of the mesh that cuts each dimension of the whole; -1 if none does."""
        found = [-1] * self.ndim
        for i, placement in enumerate(self.placements):
            if isinstance(placement, Shard):
                if found[placement.dim] > -1:
                    raise ValueError(f"Tensor dim {placement.dim} is already sharded on mesh dim "
                                     f"{found[placement.dim]}, DTensor operator implementation "
                                     "does not support things like hybrid sharding strategies "
                                     "yet (i.e. [Shard(0), Shard(0)])")
                found[placement.dim] = i
        return found

    @property
    def sums(self) -> list[int]:
        """The dimensions of the mesh along which processes have terms."""
        return [i for i, p in enumerate(self.placements) if p.is_partial()]

    @classmethod
    def from_dim_map(cls, mesh: Any, dim_map: list[int], sums: list[int],
                     tensor_meta: TensorMeta | None = None) -> DTensorSpec:
        """A spec of what `dim_map` and `sums` say."""
        placements: list[Placement] = [Replicate() for _ in range(mesh.ndim)]
        for i in sums:
            placements[i] = Partial()
        for dim, i in enumerate(dim_map):
            if i >= 0:
                if not placements[i].is_replicate():
                    raise RuntimeError("DeviceMesh dimension can't be mapped to two dimension of "
                                       "the same tensor" if placements[i].is_shard() else
                                       f"DeviceMesh dimension {i} cannot be both shard and partial!"
                                       )
                placements[i] = Shard(dim)
        return cls(mesh, tuple(placements), tensor_meta)

    def is_replicated(self) -> bool:
        """Has each process the whole?"""
        return all(p.is_replicate() for p in self.placements)

    def is_sharded(self) -> bool:
        """Is the whole cut?"""
        return any(p.is_shard() for p in self.placements)

    def shallow_copy_with_tensor_meta(self, tensor_meta: TensorMeta | None) -> DTensorSpec:
        """The same placements of another tensor."""
        return DTensorSpec(self.mesh, self.placements, tensor_meta)


_LETTERS = {flambeau.float32: "f32", flambeau.float64: "f64", flambeau.float16: "f16",
            flambeau.bfloat16: "bf16", flambeau.int64: "i64", flambeau.int32: "i32",
            flambeau.int16: "i16", flambeau.int8: "i8", flambeau.uint8: "u8",
            flambeau.bool: "b8", flambeau.complex64: "c64", flambeau.complex128: "c128"}
