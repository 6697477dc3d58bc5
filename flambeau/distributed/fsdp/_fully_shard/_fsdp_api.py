"""How `fully_shard` computes and where parameters wait: its options."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flambeau


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """In which types parameters are used and gradients reduced."""
    param_dtype: flambeau.dtype | None = None
    reduce_dtype: flambeau.dtype | None = None
    output_dtype: flambeau.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Where parameters wait: where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait in main memory: here they always do."""
    pin_memory: bool = True


@dataclass(frozen=True)
class DataParallelMeshDims:
    """Names of the dimensions of a mesh along which parameters are cut, and copied.

    >>> DataParallelMeshDims(shard="fsdp").shard_names
    ('fsdp',)
    """
    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.shard is None and self.replicate is None:
            raise ValueError("At least one of shard or replicate must be set in "
                             "DataParallelMeshDims")

    @property
    def shard_names(self) -> tuple[str, ...]:
        """The dimensions along which parameters are cut."""
        return _names(self.shard)

    @property
    def replicate_names(self) -> tuple[str, ...]:
        """The dimensions along which they are copied."""
        return _names(self.replicate)


def _names(given: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


# ---- what moves parameters and gradients --------------------------------------------------------

class Comm(ABC):
    """A way to gather parameters or to reduce gradients."""

    @abstractmethod
    def allocate(self, size: Sequence[int], *, dtype: flambeau.dtype, device: flambeau.device
                 ) -> flambeau.Tensor:
        """Memory for what is sent or received."""


class AllGather(Comm):
    """Called with an output, an input, a group, and whether to wait: `all_gather_into_tensor`."""

    @abstractmethod
    def __call__(self, output_tensor: flambeau.Tensor, input_tensor: flambeau.Tensor, group: Any,
                 async_op: bool = False) -> Any: ...


class ReduceScatter(Comm):
    """Called with an output, an input, a group and an operation: `reduce_scatter_tensor`."""

    @abstractmethod
    def __call__(self, output_tensor: flambeau.Tensor, input_tensor: flambeau.Tensor, group: Any,
                 op: Any, async_op: bool = False) -> Any: ...
