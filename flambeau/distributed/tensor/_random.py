"""Random numbers on distributed tensors: on CPUs each process draws those of its piece from its
own generator. Generators of GPUs are kept in step by their offsets, which those of CPUs lack."""
from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec
from flambeau.distributed.tensor.placement_types import Shard

__all__ = ["OffsetBasedRNGTracker", "is_rng_supported_mesh", "manual_seed"]

_rng_tracker: _RNGStateTracker | None = None


def is_rng_supported_mesh(device_mesh: Any) -> bool:
    """Are random numbers on this mesh those of one process? Not on CPUs."""
    if device_mesh.device_type == "cpu":
        warnings.warn("DTensor random operators may not have complete support on cpu device mesh",
                      stacklevel=2)
        return False
    return device_mesh.device_type in ("cuda", "xpu", "hpu")


def manual_seed(seed: int, device_mesh: Any) -> None:
    """Seed the random numbers of a mesh. On CPUs use `flambeau.manual_seed`: with one seed for all,
    what is replicated is the same everywhere."""
    if not is_rng_supported_mesh(device_mesh):
        warnings.warn("DTensor manual_seed() may not have complete support on "
                      f"{device_mesh.device_type} device mesh", stacklevel=2)
        return
    if device_mesh.get_coordinate() is None:
        raise RuntimeError("manual_seed requires the current rank to be a part of the device mesh "
                           "otherwise DTensor RNG state on the rank will not be initialized and "
                           "the behavior of DTensor random ops is undefined.")
    global _rng_tracker
    if _rng_tracker is None:
        _rng_tracker = OffsetBasedRNGTracker(device_mesh, run_state_sync=False)
    _rng_tracker._manual_seed(seed)


class _PhiloxState:
    """The state of a generator of GPUs: a seed and an offset, eight bytes each.

    >>> state = _PhiloxState(flambeau.zeros(16, dtype=flambeau.uint8))
    >>> state.offset = flambeau.tensor([8])
    >>> state.state.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]
    """

    def __init__(self, state: Tensor):
        self._state = state

    @property
    def state(self) -> Tensor:
        """All bytes."""
        return self._state

    @property
    def offset(self) -> Tensor:
        """How many numbers have been drawn."""
        return self._state[8:].view(flambeau.int64)

    @offset.setter
    def offset(self, offset: Tensor) -> None:
        assert offset.numel() == 1
        self._state[8:] = offset.to(flambeau.int64).view(flambeau.uint8)

    @property
    def seed(self) -> Tensor:
        """The seed."""
        return self._state[:8].view(flambeau.uint64)

    @seed.setter
    def seed(self, seed: Tensor) -> None:
        assert seed.numel() == 1
        self._state[:8] = seed.to(flambeau.int64).view(flambeau.uint8)


class _RNGStateTracker:
    """Keeps the generators of processes in step."""

    def __init__(self, device: Any):
        self._device = device
        self._use_distribute_region = True

    @property
    def distribute_region_enabled(self) -> bool:
        """Do ops on distributed tensors draw in step?"""
        return self._use_distribute_region

    @distribute_region_enabled.setter
    def distribute_region_enabled(self, value: bool) -> None:
        self._use_distribute_region = value

    def _distribute_region(self, spec: DTensorSpec, generator: Any = None) -> Any:
        """Inside, an op draws the numbers of a piece."""

    def _manual_seed(self, parallel_seed: int) -> None:
        """Seed the generator."""


class OffsetBasedRNGTracker(_RNGStateTracker):
    """Each process draws at the offset of its piece."""

    def __init__(self, device_mesh: Any, run_state_sync: bool = True):
        device = _resolve_device(device_mesh)
        super().__init__(device)
        if not is_rng_supported_mesh(device_mesh) or not flambeau.cuda.is_available():
            raise RuntimeError("OffsetBasedRNGTracker instantiation requires the presence of "
                               f"CUDA/CUDA-like/XPU device. Got {device.type} instead.")

    def _manual_seed(self, parallel_seed: int) -> None:
        flambeau.manual_seed(parallel_seed)

    @contextlib.contextmanager
    def _distribute_region(self, spec: DTensorSpec, generator: Any = None) -> Iterator[None]:
        yield


def _resolve_device(device_mesh: Any) -> flambeau.device:
    """The device of this process."""
    if device_mesh.device_type == "cpu":
        return flambeau.device("cpu", 0)
    return flambeau.device(device_mesh.device_type, device_mesh.get_rank())


# ---- which piece it is --------------------------------------------------------------------------

def _calc_first_shard_size(spec: DTensorSpec) -> list[int]:
    """The shape of the first piece, the largest."""
    size = list(spec.shape)
    for i, placement in enumerate(spec.placements):
        if isinstance(placement, Shard):
            size[placement.dim], _ = placement.local_shard_size_and_offset(
                size[placement.dim], spec.mesh.size(i), 0)
    return size


def _calc_shard_info(mesh_coordinate: Sequence[int], spec: DTensorSpec
                     ) -> tuple[list[int], list[int]]:
    """Along each dimension, which piece a process has, of how many."""
    index, total = [0] * len(spec.shape), [1] * len(spec.shape)
    for i, placement in enumerate(spec.placements):
        if isinstance(placement, Shard):
            count = spec.mesh.size(i)
            index[placement.dim] = index[placement.dim] * count + mesh_coordinate[i]
            total[placement.dim] *= count
    return index, total


def _calc_shard_linear_idx(shard_coord: Sequence[int], shard_size: Sequence[int]) -> int:
    """The number of a piece among all, row after row.

    >>> _calc_shard_linear_idx([1, 2], [3, 4])
    6
    """
    return sum(c * prod(shard_size[i + 1:]) for i, c in enumerate(shard_coord))
