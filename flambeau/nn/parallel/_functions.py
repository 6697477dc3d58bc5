"""`comm` as functions with derivatives: each is the other's, and without GPUs each refuses."""
from __future__ import annotations

from typing import Any

from flambeau.autograd import Function
from flambeau.nn.parallel import comm


class Broadcast(Function):
    """Copies on several GPUs; gradients are summed."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Any, *inputs: Any) -> Any:
        return comm.broadcast_coalesced(inputs, target_gpus)


class ReduceAddCoalesced(Function):
    """Sums over several GPUs; gradients are copied."""

    @staticmethod
    def forward(ctx: Any, destination: Any, num_inputs: int, *grads: Any) -> Any:
        return comm.reduce_add_coalesced(grads, destination)


class Gather(Function):
    """Tensors of several GPUs as one; gradients are scattered."""

    @staticmethod
    def forward(ctx: Any, target_device: Any, dim: int, *inputs: Any) -> Any:
        return comm.gather(inputs, dim, target_device)


class Scatter(Function):
    """Pieces on several GPUs; gradients are gathered."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Any, chunk_sizes: Any, dim: int, input: Any) -> Any:
        return comm.scatter(input, target_gpus, chunk_sizes, dim)


def _get_stream(device: Any) -> None:
    """The stream in which a copy to a device would run: none."""
