"""How a tensor lies on one dimension of a mesh of processes.

`Shard(dim)`: each process has a piece along a dimension. `Replicate()`: each has the whole.
`Partial(op)`: each has a term, and the whole is their sum, or what `op` says. What is done with the
pieces stands beside each: the collective that makes another placement of it.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flambeau
from flambeau._support.c_functions import bound_in_c
from flambeau.core.tensor import Tensor
from flambeau.distributed import _functional_collectives as funcol
from flambeau.distributed.tensor._collective_utils import (
    fill_empty_tensor_to_shards,
    mesh_broadcast,
    mesh_scatter,
    pad_tensor,
    unpad_tensor,
)

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


@bound_in_c
class Placement:
    """One of `Shard`, `Replicate` and `Partial`."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Is it a `Shard`, along `dim` where that is given?"""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Has each process the whole?"""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Has each process a term of the whole?"""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


def _shard_size_and_offset(size: int, num_chunks: int, rank: int) -> tuple[int, int]:
    piece = -(-size // num_chunks)
    start = min(piece * rank, size)
    return min(piece, size - start), start


def _pieces(tensor: Tensor, num_chunks: int, dim: int) -> list[Tensor]:
    """As many pieces as asked for, the last of them maybe empty."""
    found = list(tensor.chunk(num_chunks, dim))
    return fill_empty_tensor_to_shards(found, dim, num_chunks - len(found))


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a piece along dimension `dim`; the first have ⌈size / processes⌉.

    >>> Shard.local_shard_size_and_offset(5, 2, 1)
    (2, 3)
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int
                                    ) -> tuple[int, int]:
        """How much of `curr_local_size` process `rank` of `num_chunks` has, and from where on."""
        return _shard_size_and_offset(curr_local_size, num_chunks, rank)

    _local_shard_size_and_offset = local_shard_size_and_offset

    def _split_tensor(self, tensor: Tensor, num_chunks: int, *, with_padding: bool = True,
                      contiguous: bool = True) -> tuple[list[Tensor], list[int]]:
        """The pieces, of one size if they are padded, and by how much each is."""
        assert self.dim <= tensor.ndim, (
            f"Sharding dim {self.dim} greater than tensor ndim {tensor.ndim}")
        pieces = _pieces(tensor, num_chunks, self.dim)
        most = pieces[0].shape[self.dim] if pieces else 0
        pads = [most - piece.shape[self.dim] for piece in pieces] if with_padding else []
        if with_padding:
            pieces = [pad_tensor(piece, self.dim, pad) for piece, pad in zip(pieces, pads)]
        return [p.contiguous() for p in pieces] if contiguous else pieces, pads

    def _shard_tensor(self, tensor: Tensor, mesh: Any, mesh_dim: int,
                      src_data_rank: int | None = 0) -> Tensor:
        """This process's piece of the tensor that one process has (each, if None)."""
        place, count = mesh.get_coordinate(), mesh.size(mesh_dim)
        if place is None:
            return tensor.new_empty(0, requires_grad=tensor.requires_grad)
        if src_data_rank is None:
            return _pieces(tensor, count, self.dim)[place[mesh_dim]].contiguous().clone()
        pieces, pads = self._split_tensor(tensor, count)
        mine = place[mesh_dim]
        output = flambeau.empty_like(pieces[mine])
        mesh_scatter(output, pieces, mesh, mesh_dim=mesh_dim, group_src=src_data_rank)
        return unpad_tensor(output, self.dim, pads[mine]).contiguous()

    @classmethod
    def _make_shard_tensor(cls, dim: int, tensor: Tensor, mesh: Any, mesh_dim: int,
                           src_data_rank: int | None = 0) -> Tensor:
        return cls(dim)._shard_tensor(tensor, mesh, mesh_dim, src_data_rank)

    def _replicate_to_shard(self, local_tensor: Tensor, mesh: Any, mesh_dim: int,
                            shard_index: int) -> Tensor:
        """The piece of a tensor that all have."""
        return _pieces(local_tensor, mesh.size(mesh_dim), self.dim)[shard_index].contiguous()

    def _to_replicate_tensor(self, local_tensor: Tensor, mesh: Any, mesh_dim: int,
                             current_logical_shape: Sequence[int]) -> Tensor:
        """All pieces together, for all; `current_logical_shape` is that of the whole."""
        count, size = mesh.size(mesh_dim), current_logical_shape[self.dim]
        most = -(-size // count)
        padded = pad_tensor(local_tensor, self.dim, most - local_tensor.shape[self.dim])
        found = funcol.all_gather_tensor(padded.contiguous(), self.dim, (mesh, mesh_dim))
        return unpad_tensor(found, self.dim, most * count - size).contiguous()

    def _reduce_shard_tensor(self, tensor: Tensor, mesh: Any, reduce_op: str, mesh_dim: int
                             ) -> Tensor:
        """This process's piece of the sum of all processes' terms."""
        place, count = mesh.get_coordinate(), mesh.size(mesh_dim)
        if place is None:
            return tensor
        if tensor.shape[self.dim] % count == 0:
            return funcol.reduce_scatter_tensor(tensor, reduce_op, self.dim, (mesh, mesh_dim))
        pieces, pads = self._split_tensor(tensor, count)
        found = funcol.reduce_scatter_tensor(flambeau.cat(pieces, self.dim), reduce_op, self.dim,
                                             (mesh, mesh_dim))
        return unpad_tensor(found, self.dim, pads[place[mesh_dim]]).contiguous()

    def _to_new_shard_dim(self, local_tensor: Tensor, mesh: Any, mesh_dim: int,
                          current_logical_shape: Sequence[int], new_shard_dim: int) -> Tensor:
        """A piece along another dimension instead: each sends each the crossing of their pieces."""
        place, count = mesh.get_coordinate(), mesh.size(mesh_dim)
        if place is None:
            return local_tensor
        old_size = current_logical_shape[self.dim]
        most = -(-old_size // count)
        padded = pad_tensor(local_tensor, self.dim, most - local_tensor.shape[self.dim])
        crossings, _ = Shard(new_shard_dim)._split_tensor(padded, count)
        sent = flambeau.stack(crossings)
        found = funcol.all_to_all_single(sent, None, None, (mesh, mesh_dim))
        whole = flambeau.cat(list(found), self.dim)
        whole = unpad_tensor(whole, self.dim, most * count - old_size)
        size, _ = _shard_size_and_offset(current_logical_shape[new_shard_dim], count,
                                         place[mesh_dim])
        return whole.narrow(new_shard_dim, 0, size).contiguous()

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, init=False, repr=False)
class _StridedShard(Placement):
    """A `Shard` of each of `split_factor` equal parts along the dimension: what is left where
    another dimension of the mesh, further to the right, has been sharded first."""

    dim: int
    split_factor: int

    def __init__(self, dim: int, *, split_factor: int = 1, sf: int | None = None) -> None:
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "split_factor", split_factor if sf is None else sf)

    def _parted(self, tensor: Tensor) -> Tensor:
        return tensor.unflatten(self.dim, (self.split_factor, -1))

    def _indices(self, size: int, num_chunks: int) -> list[Tensor]:
        """Which places along the dimension each process has."""
        places = flambeau.arange(size)
        parts = places.chunk(self.split_factor)
        shards: list[list[Tensor]] = [[] for _ in range(num_chunks)]
        for part in parts:
            for i, piece in enumerate(_pieces(part, num_chunks, 0)):
                shards[i].append(piece)
        return [flambeau.cat(shard) for shard in shards]

    def local_shard_size_and_offset(self, curr_local_size: int, num_chunks: int, rank: int
                                    ) -> tuple[int, int]:
        """How much of `curr_local_size` process `rank` of `num_chunks` has, and where the first
        of it is."""
        mine = self._indices(curr_local_size, num_chunks)[rank]
        return mine.numel(), int(mine[0]) if mine.numel() else curr_local_size

    _local_shard_size_and_offset = local_shard_size_and_offset

    def _replicate_to_shard(self, local_tensor: Tensor, mesh: Any, mesh_dim: int,
                            shard_index: int) -> Tensor:
        """The pieces of a tensor that all have."""
        places = self._indices(local_tensor.shape[self.dim], mesh.size(mesh_dim))[shard_index]
        return local_tensor.index_select(self.dim, places).contiguous()

    def _shard_tensor(self, tensor: Tensor, mesh: Any, mesh_dim: int,
                      src_data_rank: int | None = 0) -> Tensor:
        """This process's pieces of the tensor that one process has (each, if None)."""
        whole = tensor if src_data_rank is None else Replicate()._replicate_tensor(
            tensor, mesh, mesh_dim, src_data_rank)
        return self._replicate_to_shard(whole, mesh, mesh_dim, mesh.get_coordinate()[mesh_dim])

    def _to_replicate_tensor(self, local_tensor: Tensor, mesh: Any, mesh_dim: int,
                             current_logical_shape: Sequence[int]) -> Tensor:
        """All pieces together, for all."""
        shards = self._indices(current_logical_shape[self.dim], mesh.size(mesh_dim))
        most = max(s.numel() for s in shards)
        padded = pad_tensor(local_tensor, self.dim, most - local_tensor.shape[self.dim])
        found = funcol.all_gather_tensor(padded.contiguous(), self.dim, (mesh, mesh_dim))
        kept = [piece.narrow(self.dim, 0, s.numel())
                for piece, s in zip(found.split(most, self.dim), shards)]
        order = flambeau.argsort(flambeau.cat(shards))
        return flambeau.cat(kept, self.dim).index_select(self.dim, order)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has the whole."""

    def _replicate_tensor(self, tensor: Tensor, mesh: Any, mesh_dim: int,
                          src_data_rank: int | None = 0) -> Tensor:
        """The tensor that one process has (each, if None)."""
        if mesh.get_coordinate() is None:
            return tensor.new_empty(0, requires_grad=tensor.requires_grad)
        tensor = tensor.contiguous()
        if src_data_rank is not None:
            tensor = tensor.clone()
            mesh_broadcast(tensor, mesh, mesh_dim=mesh_dim, group_src=src_data_rank)
        return tensor

    @classmethod
    def _make_replicate_tensor(cls, tensor: Tensor, mesh: Any, mesh_dim: int,
                               src_data_rank: int | None = 0) -> Tensor:
        return cls()._replicate_tensor(tensor, mesh, mesh_dim, src_data_rank)

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Each process has a term: the whole is their sum, or what `reduce_op` says."""

    reduce_op: str = "sum"

    ALL_REDUCE_OPS = ("sum", "avg", "min", "max", "product")
    LINEAR_REDUCE_OPS = ("sum", "avg")

    def _reduce_value(self, tensor: Tensor, mesh: Any, mesh_dim: int) -> Tensor:
        """The whole, for all."""
        return funcol.all_reduce(tensor, self.reduce_op, (mesh, mesh_dim))

    def _reduce_shard_value(self, tensor: Tensor, mesh: Any, mesh_dim: int, shard_spec: Placement
                            ) -> Tensor:
        """A piece of the whole for each."""
        assert isinstance(shard_spec, Shard)
        return shard_spec._reduce_shard_tensor(tensor, mesh, self.reduce_op, mesh_dim)

    def _partition_value(self, tensor: Tensor, mesh: Any, mesh_dim: int) -> Tensor:
        """A term of a tensor that all have."""
        if self.reduce_op == "sum":
            return tensor / mesh.size(mesh_dim)
        if self.reduce_op in ("avg", "min", "max"):
            return tensor
        raise ValueError(f"Replicate to Partial({self.reduce_op}) conversion is not supported.")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True, repr=False)
class _MaskPartial(Partial):
    """Each process has the rows of an embedding that it knows, and zeros in place of the others."""

    offset_shape: Any = None
    offset_dim: int = 0

    def __repr__(self) -> str:
        return (f"_MaskPartial(reduce_op={self.reduce_op}, offset_shape={self.offset_shape}, "
                f"offset_dim={self.offset_dim})")

    def __str__(self) -> str:
        return "MaskP"


@dataclass(frozen=True, repr=False)
class _NormPartial(Partial):
    """Each process has the norm of its piece; the whole is the norm of these norms."""

    norm_type: float = 2

    def __post_init__(self) -> None:
        kinds = {float("inf"): "max", float("-inf"): "min"}
        object.__setattr__(self, "reduce_op", kinds.get(self.norm_type, "sum"))

    def _powers(self, tensor: Tensor) -> Tensor:
        return tensor if self.reduce_op != "sum" or self.norm_type in (0, 1) else \
            tensor ** self.norm_type

    def _rooted(self, tensor: Tensor) -> Tensor:
        return tensor if self.reduce_op != "sum" or self.norm_type in (0, 1) else \
            tensor ** (1.0 / self.norm_type)

    def _reduce_value(self, tensor: Tensor, mesh: Any, mesh_dim: int) -> Tensor:
        return self._rooted(super()._reduce_value(self._powers(tensor), mesh, mesh_dim))

    def _reduce_shard_value(self, tensor: Tensor, mesh: Any, mesh_dim: int, shard_spec: Placement
                            ) -> Tensor:
        return self._rooted(super()._reduce_shard_value(self._powers(tensor), mesh, mesh_dim,
                                                        shard_spec))

    def _partition_value(self, tensor: Tensor, mesh: Any, mesh_dim: int) -> Tensor:
        if self.reduce_op != "sum":
            return tensor
        return tensor / mesh.size(mesh_dim) ** (1.0 / self.norm_type) if self.norm_type else tensor

    def __repr__(self) -> str:
        return f"_NormPartial({self.norm_type:g})"

    def __str__(self) -> str:
        return f"_NormP({self.norm_type:g})"



def __getattr__(name: str) -> Any:
    if name in ("DTensorSpec", "TensorMeta"):
        from flambeau.distributed.tensor import _dtensor_spec
        return getattr(_dtensor_spec, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
