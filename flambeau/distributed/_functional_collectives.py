"""Collectives that give new tensors, for groups of one process: what came in, as it is."""
from __future__ import annotations

from typing import Any

from flambeau.core.tensor import Tensor

__all__ = ["all_gather_tensor", "all_reduce", "all_to_all_single", "all_to_all_single_autograd",
           "broadcast", "reduce_scatter_tensor", "wait_tensor"]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, once it is there: it always is."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """What process `src` has."""
    return self.clone()


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The sum, mean, … over the processes."""
    return self.clone()


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all processes, one behind another along `gather_dim`."""
    return self.clone()


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any,
                          tag: str = "") -> Tensor:
    """This process's piece along `scatter_dim` of the sum over the processes."""
    return self.clone()


def all_to_all_single(self: Tensor, output_split_sizes: Any, input_split_sizes: Any, group: Any,
                      tag: str = "") -> Tensor:
    """The pieces that all processes have for this one."""
    return self.clone()


all_to_all_single_autograd = all_to_all_single
