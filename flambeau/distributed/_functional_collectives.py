"""Collectives that give new tensors."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.distributed import distributed_c10d as dist

__all__ = ["all_gather_tensor", "all_reduce", "all_to_all_single", "all_to_all_single_autograd",
           "broadcast", "reduce_scatter_tensor", "wait_tensor"]


def _several(group: Any) -> bool:
    """Is there any other process?"""
    return dist.is_initialized() and dist.get_world_size(_group(group)) > 1


def _group(group: Any) -> Any:
    return group if isinstance(group, dist.ProcessGroup) else None


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, once it is there: it always is."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """What process `src` has."""
    found = self.clone()
    if _several(group):
        dist.broadcast(found.detach(), src, _group(group))
    return found


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The sum, mean, … over the processes."""
    found = self.clone()
    if _several(group):
        dist.all_reduce(found.detach(), getattr(dist.ReduceOp, reduceOp.upper()), _group(group))
    return found


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, one behind another along `gather_dim`."""
    if not _several(group):
        return self.clone()
    parts = [flambeau.empty_like(self) for _ in range(dist.get_world_size(_group(group)))]
    dist.all_gather(parts, self, _group(group))
    return flambeau.cat(parts, gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any,
                          tag: str = "") -> Tensor:
    """This process's piece along `scatter_dim` of the sum over the processes."""
    if not _several(group):
        return self.clone()
    count = dist.get_world_size(_group(group))
    if self.shape[scatter_dim] % count:
        raise RuntimeError(f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a "
                           f"multiple of group_size {count}")
    parts = [part.contiguous() for part in self.detach().chunk(count, scatter_dim)]
    found = flambeau.empty_like(parts[0])
    dist.reduce_scatter(found, parts, getattr(dist.ReduceOp, reduceOp.upper()), _group(group))
    return found


def all_to_all_single(self: Tensor, output_split_sizes: Any, input_split_sizes: Any, group: Any,
                      tag: str = "") -> Tensor:
    """The pieces that all processes have for this one."""
    if not _several(group):
        return self.clone()
    rows = sum(output_split_sizes) if output_split_sizes else self.shape[0]
    found = self.new_empty((rows, *self.shape[1:]))
    dist.all_to_all_single(found, self, output_split_sizes, input_split_sizes, _group(group))
    return found


def all_to_all_single_autograd(self: Tensor, output_split_sizes: Any, input_split_sizes: Any,
                               group: Any, tag: str = "") -> Tensor:
    """`all_to_all_single` with gradients; across several processes there are none yet."""
    if _several(group) and self.requires_grad:
        raise NotImplementedError("all_to_all_single_autograd across several processes")
    return all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag)
