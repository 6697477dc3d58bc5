"""`input_reshard`: of what is kept for backward, each process keeps a piece."""
from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from flambeau import nn
from flambeau.autograd.graph import saved_tensors_hooks
from flambeau.core.tensor import Tensor
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.tensor import DTensor, Replicate, Shard

__all__ = ["input_reshard"]


class _Cut(NamedTuple):
    """A tensor that all processes had, of which each has kept a piece."""
    pieces: DTensor


def input_reshard(module: nn.Module, tp_device_mesh: DeviceMesh,
                  input_reshard_dim: int | None = None) -> nn.Module:
    """`module`, which is cut over a mesh: what it keeps for backward and all processes have is cut
    along `input_reshard_dim` until then (None: nothing changes)."""
    if input_reshard_dim is None:
        return module
    hooks: list[saved_tensors_hooks] = []

    def before(_: nn.Module, inputs: Any) -> None:
        hook = saved_tensors_hooks(partial(_pack_hook_tp, tp_device_mesh, input_reshard_dim),
                                   partial(_unpack_hook_tp, tp_device_mesh, input_reshard_dim))
        hook.__enter__()
        hooks.append(hook)

    def after(_: nn.Module, inputs: Any, output: Any) -> None:
        hooks.pop().__exit__(None, None, None)
    module.register_forward_pre_hook(before)
    module.register_forward_hook(after, always_call=True)
    return module


def _pack_hook_tp(mesh: DeviceMesh, input_reshard_dim: int, x: Tensor) -> Any:
    """What is kept of a tensor: a piece of it, where all processes have the whole. Of plain tensors
    nothing is known, they stay."""
    if isinstance(x, DTensor) and x._spec.is_replicated() and x.ndim > input_reshard_dim:
        return _Cut(x.redistribute(device_mesh=mesh,
                                   placements=[Shard(input_reshard_dim)] * mesh.ndim))
    return x


def _unpack_hook_tp(mesh: DeviceMesh, input_reshard_dim: int, x: Any) -> Tensor:
    """The tensor of what was kept."""
    if isinstance(x, _Cut):
        return x.pieces.redistribute(device_mesh=mesh, placements=[Replicate()] * mesh.ndim)
    return x
