"""What a kind of tensor says of itself so that `torch.distributed.checkpoint` can keep it."""
from __future__ import annotations

from typing import Protocol, runtime_checkable

from flambeau.core.tensor import Tensor


@runtime_checkable
class _Checkpointable(Protocol):
    """A tensor made of pieces: what of it is written, where its pieces lie, and one of them."""

    def __create_write_items__(self, fqn: str, object: object) -> list[object]:
        """What is written under a name."""
        ...

    def __create_chunk_list__(self) -> list[object]:
        """Where the pieces lie."""
        ...

    def __get_tensor_shard__(self, index: int) -> Tensor:
        """A piece."""
        ...
