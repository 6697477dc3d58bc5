"""From one placement to another: which collectives, in which order.

The dimensions of a mesh cut a tensor from left to right. Where several cut one dimension of the
tensor, only the last cut can be undone, and only after the last a new one can be made; so the
cuts that are in the way are undone from right to left, and those that are wanted made from left to
right.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from flambeau.autograd.function import Function
from flambeau.core.tensor import Tensor
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)


class _TransformInfo(NamedTuple):
    """One step: what changes on a dimension of the mesh, of a tensor of that shape there."""
    mesh_dim: int
    src_dst_placements: tuple[Placement, Placement]
    logical_shape: Sequence[int]

    def _comm_type_key(self) -> str | None:
        """The collective that the step is; None without one."""
        source, target = self.src_dst_placements
        if source.is_partial():
            return "all_reduce" if target.is_replicate() else \
                "reduce_scatter" if target.is_shard() else None
        if _cuts(source):
            return "all_gather" if target.is_replicate() else "all_to_all"
        return None


def _cuts(placement: Placement) -> bool:
    return isinstance(placement, (Shard, _StridedShard))


def _cut_order(placements: Sequence[Placement], dim: int) -> list[int]:
    """The dimensions of the mesh that cut a dimension of the tensor, in order."""
    return [i for i, p in enumerate(placements) if _cuts(p) and p.dim == dim]   # type: ignore


def _stays(i: int, current: Sequence[Placement], target: Sequence[Placement]) -> bool:
    """Can the cut of a dimension of the mesh stay: is it wanted, after the same ones?"""
    if current[i] != target[i]:
        return False
    dim = current[i].dim                                # type: ignore[attr-defined]
    before = [j for j in _cut_order(current, dim) if j < i]
    return before == [j for j in _cut_order(target, dim) if j < i] and all(
        current[j] == target[j] for j in before)


def _moves(i: int, current: list[Placement], target: Sequence[Placement]) -> bool:
    """Can a cut become that of another dimension at once: nothing is cut after it on either, and
    nothing to its left has to be cut first?"""
    source, wanted = current[i], target[i]
    if not (type(source) is Shard and type(wanted) is Shard) or source.dim == wanted.dim:
        return False
    if any(j > i for dim in (source.dim, wanted.dim) for j in _cut_order(current, dim)):
        return False
    return all([j for j in _cut_order(current, dim) if j < i]
               == [j for j in _cut_order(target, dim) if j < i]
               for dim in (source.dim, wanted.dim))


class _Shapes:
    """Which shape the tensor has where a dimension of the mesh cuts it: what is left there of the
    whole after the cuts to the left."""

    def __init__(self, spec: DTensorSpec, shape: Sequence[int]):
        self.mesh, self.shape = spec.mesh, tuple(shape)

    def before(self, placements: Sequence[Placement], mesh_dim: int) -> list[int]:
        """The shape that `mesh_dim` cuts."""
        found, place = list(self.shape), self.mesh.get_coordinate()
        for i, p in enumerate(placements[:mesh_dim]):
            if _cuts(p):
                found[p.dim], _ = p.local_shard_size_and_offset(        # type: ignore
                    found[p.dim], self.mesh.size(i), place[i])          # type: ignore
        return found


def _gen_transform_infos(src_spec: DTensorSpec, dst_spec: DTensorSpec,
                         use_graph_based_transform: bool | None = None) -> list[_TransformInfo]:
    """The steps from one spec to another."""
    current, target = list(src_spec.placements), list(dst_spec.placements)
    shapes = _Shapes(src_spec, src_spec.shape)
    steps: list[_TransformInfo] = []

    def step(i: int, wanted: Placement) -> None:
        steps.append(_TransformInfo(i, (current[i], wanted), shapes.before(current, i)))
        current[i] = wanted
    for i in reversed(range(len(current))):
        if _cuts(current[i]) and not _stays(i, current, target) and not _moves(i, current, target):
            step(i, Replicate())
    for i, wanted in enumerate(target):
        if current[i] != wanted:
            if _cuts(current[i]) and not _moves(i, current, target):
                step(i, Replicate())
            step(i, wanted)
    return steps


def redistribute_local_tensor(local_tensor: Tensor, current_spec: DTensorSpec,
                              target_spec: DTensorSpec, *, async_op: bool = False,
                              use_graph_based_transform: bool | None = None,
                              is_explicit: bool = False) -> Tensor:
    """This process's piece of a tensor that is placed in another way."""
    if current_spec.mesh != target_spec.mesh:
        raise NotImplementedError("Cross device mesh comm not supported yet!")
    mesh = current_spec.mesh
    place = mesh.get_coordinate()
    if place is None:
        return local_tensor
    for info in _gen_transform_infos(current_spec, target_spec):
        local_tensor = _step(local_tensor, info, mesh, place[info.mesh_dim])
    return local_tensor


def _step(tensor: Tensor, info: _TransformInfo, mesh: Any, mine: int) -> Tensor:
    i, (source, target), shape = info
    if target.is_replicate():
        if isinstance(source, Partial):
            return source._reduce_value(tensor, mesh, i)
        return source._to_replicate_tensor(tensor, mesh, i, shape)      # type: ignore
    if isinstance(target, Shard):
        if isinstance(source, Partial):
            return source._reduce_shard_value(tensor, mesh, i, target)
        if isinstance(source, Shard):
            return source._to_new_shard_dim(tensor, mesh, i, shape, target.dim)
        return target._replicate_to_shard(tensor, mesh, i, mine)
    if isinstance(target, Partial):
        if source.is_replicate():
            return target._partition_value(tensor, mesh, i)
        if not isinstance(source, Partial) or source.reduce_op != target.reduce_op:
            raise RuntimeError(f"redistribute from {source} to {target} not supported yet")
        return tensor
    return target._replicate_to_shard(tensor, mesh, i, mine)            # type: ignore


@contextlib.contextmanager
def disable_redistribute_transform_optimization(disabled: bool = True) -> Iterator[None]:
    """Steps are never joined here: there is nothing to disable."""
    yield


@contextlib.contextmanager
def use_min_cost_redistribution_plan(enabled: bool = True) -> Iterator[None]:
    """There is one plan."""
    yield


def clear_redistribute_planner_cache() -> None:
    """Plans are not kept."""


# ---- with gradients -----------------------------------------------------------------------------

def grad_placements(forward: Sequence[Placement]) -> tuple[Placement, ...]:
    """How a gradient lies that has no placements of its own: whole where the tensor is a sum."""
    return tuple(Replicate() if p.is_partial() else p for p in forward)


def _cast(tensor: Tensor, dtype: Any) -> Tensor:
    return tensor if dtype is None or tensor.dtype is dtype else tensor.to(dtype)


class Redistribute(Function):
    """Place a tensor in another way; its gradient takes the way back."""

    @staticmethod
    def forward(ctx: Any, input: Any, device_mesh: Any, placements: tuple[Placement, ...],
                async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None
                ) -> Any:
        from flambeau.distributed.tensor._api import DTensor
        ctx.original_dtype, ctx.backward_dtype = input.dtype, backward_dtype
        local, spec = _cast(input._local_tensor, forward_dtype), input._spec
        meta = TensorMeta(spec.shape, spec.stride, local.dtype)
        current = DTensorSpec(spec.mesh, spec.placements, meta)
        ctx.current_spec = current
        target = DTensorSpec(device_mesh, placements, meta)
        if current.placements != placements or spec.mesh != device_mesh:
            local = redistribute_local_tensor(local, current, target, async_op=async_op)
        return DTensor(local.view_as(local), target, requires_grad=input.requires_grad)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return (redistribute_grad(grad_output, ctx.current_spec, ctx.backward_dtype,
                                  ctx.original_dtype), None, None, None, None, None)


def redistribute_grad(grad: Any, previous: DTensorSpec, op_dtype: Any, out_dtype: Any) -> Any:
    """A gradient in the placements that its tensor had before; terms are never made of it."""
    wanted = tuple(Replicate() if before.is_partial() and not now.is_partial() else before
                   for now, before in zip(grad.placements, previous.placements))
    if op_dtype is not None and grad.dtype is not op_dtype:
        grad = grad.to(op_dtype)
    if grad.placements != wanted:
        grad = Redistribute.apply(grad, previous.mesh, wanted)
    return grad if out_dtype is None or grad.dtype is out_dtype else grad.to(out_dtype)
