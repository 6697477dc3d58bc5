"""How a tensor lies on one dimension of a mesh of processes."""
from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


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


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a piece along dimension `dim`; the first have ⌈size / processes⌉.

    >>> Shard.local_shard_size_and_offset(5, 2, 1)
    (2, 3)
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int,
                                    rank: int) -> tuple[int, int]:
        """How much of `curr_local_size` process `rank` of `num_chunks` has, and from where on."""
        piece = -(-curr_local_size // num_chunks)
        start = min(piece * rank, curr_local_size)
        return min(piece, curr_local_size - start), start

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, repr=False)
class _StridedShard(Shard):
    """A `Shard` of each of `split_factor` groups along the dimension."""

    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has the whole."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Each process has a term: the whole is their sum, or what `reduce_op` says."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
