"""Sizes of the pieces that processes have."""
from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau.core.shapes import contiguous_strides
from flambeau.core.tensor import Tensor
from flambeau.distributed.tensor.placement_types import Placement, Shard, _StridedShard


def _is_shard_like(placement: Placement) -> bool:
    return isinstance(placement, (Shard, _StridedShard))


def compute_local_shape_and_global_offset(
        global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement],
        skip_offset: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's piece of a tensor, and where in the whole it begins."""
    return _compute_local_shape_and_global_offset(
        global_shape, mesh.shape if hasattr(mesh, "shape") else None, mesh.get_coordinate(),
        placements, skip_offset, mesh)


def _compute_local_shape_and_global_offset(
        global_shape: Sequence[int], mesh_shape: Any, my_coordinate: Any,
        placements: Sequence[Placement], skip_offset: bool = False, mesh: Any = None
        ) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if my_coordinate is None:
        return (0,), ()
    shape, offset = list(global_shape), [0] * len(global_shape)
    places: dict[int, Tensor] = {}          # of what is left, where a cut is strided
    for i, placement in enumerate(placements):
        if not isinstance(placement, (Shard, _StridedShard)):
            continue
        dim = placement.dim
        assert dim < len(shape), f"Sharding dim {dim} greater than tensor ndim {len(shape)}"
        count = mesh_shape[i] if mesh_shape is not None else mesh.size(i)
        size, start = placement.local_shard_size_and_offset(shape[dim], count, my_coordinate[i])
        if isinstance(placement, _StridedShard):
            before = places.get(dim, flambeau.arange(offset[dim], offset[dim] + shape[dim]))
            places[dim] = before[placement._indices(shape[dim], count)[my_coordinate[i]]]
        elif dim in places:
            places[dim] = places[dim].narrow(0, start, size)
        offset[dim] = global_shape[dim] if size == 0 else \
            int(places[dim][0]) if dim in places else offset[dim] + start
        shape[dim] = size
    return tuple(shape), () if skip_offset else tuple(offset)


def compute_global_tensor_info(tensor: Tensor, mesh: Any, placements: Sequence[Placement]
                               ) -> tuple[list[int], list[int]]:
    """Shape and strides of the whole, of which `tensor` is a piece of even size."""
    shape, stride = list(tensor.size()), list(tensor.stride())
    for i, placement in enumerate(placements):
        if not isinstance(placement, (Shard, _StridedShard)):
            if not (placement.is_replicate() or placement.is_partial()):
                raise RuntimeError(f"placement type {type(placement)} not supported!")
            continue
        dim, count = placement.dim, mesh.size(i)
        if dim < 0:
            raise AssertionError(f"Shard placements should have negative dims normalized in the "
                                 f"user-facing APIs: {placement}")
        if dim >= tensor.ndim:
            raise RuntimeError(f"Sharding dim {dim} greater than tensor ndim {tensor.ndim} for "
                               f"placement number {i}")
        inner = stride[dim]
        shape[dim] *= count
        stride = [s * count if j != dim and s >= inner and _outside(shape, stride, j, dim) else s
                  for j, s in enumerate(stride)]
    return shape, stride


def _outside(shape: list[int], stride: list[int], j: int, dim: int) -> bool:
    """Does dimension `j` step over all of `dim`?"""
    return stride[j] > stride[dim] or (stride[j] == stride[dim] and shape[dim] != 1 and j < dim)


def compute_global_tensor_shape(shape: Sequence[int], mesh: Any, placements: Sequence[Placement]
                                ) -> Any:
    """The shape of the whole, of which this process has a piece of `shape`, others maybe pieces
    of other sizes along the dimension that is cut."""
    if len(placements) != 1:
        raise NotImplementedError("compute_global_tensor_shape only supports 1 placement for now.")
    if len(placements) != mesh.ndim:
        raise RuntimeError("Expected one placement per mesh dim, but found "
                           f"{len(placements)} placements and {mesh.ndim} mesh dims.")
    placement = placements[0]
    if placement.is_replicate():
        return flambeau.Size(shape)
    if not isinstance(placement, Shard):
        raise NotImplementedError(f"Placement type {type(placement)} not supported.")
    from flambeau.distributed.distributed_c10d import all_gather_into_tensor
    mine = flambeau.tensor(list(shape))
    found = flambeau.empty(mesh.size() * mine.numel(), dtype=mine.dtype)
    all_gather_into_tensor(found, mine, group=mesh.get_group())
    every = found.view(mesh.size(), -1)
    for other in every.tolist():
        if any(a != b for i, (a, b) in enumerate(zip(other, shape)) if i != placement.dim):
            raise RuntimeError(f"Non-sharded dimensions should have identical size across ranks, "
                               f"but found {every.tolist()}")
    result = list(shape)
    result[placement.dim] = int(every[:, placement.dim].sum())
    return flambeau.Size(result)


def normalize_to_torch_size(size: Any) -> Any:
    """A shape, given as numbers or as a sequence of them."""
    if len(size) == 1 and isinstance(size[0], Sequence):
        return flambeau.Size(size[0])
    return flambeau.Size(size)


def assert_no_mixed_partial_types(placements: Sequence[Placement]) -> None:
    """Terms of one kind only."""
    kinds = {p.reduce_op for p in placements if p.is_partial()}     # type: ignore[attr-defined]
    if len(kinds) > 1 and kinds != {"sum", "avg"}:
        raise ValueError(f"Mixing Partial reduce types is not supported: {sorted(kinds)}")


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    return tuple(contiguous_strides(tuple(shape)))


class ExplicitRedistributionContext(contextlib.ContextDecorator):
    """Inside, an op whose inputs would be placed in another way raises: the program says itself
    where `redistribute` is to be called."""

    _local: list[tuple[bool, bool, str]] = []

    def __init__(self, enable: bool = True, strict: bool = False, mode: str = "raise"):
        if mode not in ("raise", "warn"):
            raise RuntimeError(f"Invalid mode {mode}")
        self._setting = enable, strict, mode

    @classmethod
    def observe_redistribution(cls, current: Any, target: Any, about: str = "") -> None:
        """An op needs an input placed in another way."""
        if not cls._local or not cls._local[-1][0]:
            return
        _, strict, mode = cls._local[-1]
        from flambeau.distributed.tensor._collective_utils import redistribute_cost
        if not strict and redistribute_cost(current, target) <= 0:
            return
        message = (f"Implicit redistribution occurred for {current} to {target}{about} while "
                   "ExplicitRedistributionContext was active")
        if mode == "raise":
            raise RuntimeError(message)
        import logging
        logging.getLogger(__name__).warning(message)

    def __enter__(self) -> ExplicitRedistributionContext:
        self._local.append(self._setting)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._local.pop()


def compute_local_stride(global_stride: Sequence[int], local_shape: Sequence[int]
                         ) -> tuple[int, ...]:
    """The strides of a piece of this shape, whose dimensions lie in the order of the whole's.

    >>> compute_local_stride((1, 8), (4, 3))
    (1, 4)
    """
    order = sorted(range(len(local_shape)), key=lambda d: global_stride[d])
    found, step = [0] * len(local_shape), 1
    for dim in order:
        found[dim] = step
        step *= local_shape[dim]
    return tuple(found)


def compute_local_tensor_info(global_tensor: Tensor, mesh: Any, placements: Sequence[Placement]
                              ) -> tuple[list[int], list[int]]:
    """Shape and strides of this process's piece of a tensor."""
    for i, placement in enumerate(placements):
        dim = getattr(placement, "dim", -1)
        if dim >= global_tensor.ndim:
            raise AssertionError(f"Sharding dim {dim} greater than tensor ndim "
                                 f"{global_tensor.ndim} for placement number {i}.")
    shape, _ = compute_local_shape_and_global_offset(global_tensor.shape, mesh, placements)
    return list(shape), list(compute_local_stride(global_tensor.stride(), shape))


def try_find_mesh_from_args(op_call: Any, args: Sequence[object]) -> Any:
    """The mesh of the first argument that has one."""
    from flambeau.distributed.tensor._api import DTensor
    from flambeau.distributed.tensor._dtensor_spec import DTensorSpec
    for arg in args:
        first = arg[0] if isinstance(arg, (list, tuple)) and arg else arg
        if isinstance(first, (DTensor, DTensorSpec)):
            return first.device_mesh
    raise ValueError(f"Cannot find device mesh from args for op : {op_call}.")
