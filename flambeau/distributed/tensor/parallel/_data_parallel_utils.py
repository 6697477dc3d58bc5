"""Distributed parameters as local ones, and back: for data parallelism on top."""
from __future__ import annotations

from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.distributed._functional_collectives import AsyncCollectiveTensor
from flambeau.distributed.tensor import DTensor
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec


def sync_grad_hook(grad: Any, *, device_handle: Any = None, compute_stream: Any = None) -> Any:
    """A gradient that has arrived."""
    if isinstance(grad, AsyncCollectiveTensor):
        grad = grad.wait()
    return grad


def _flatten_tensor(tensor: Tensor) -> tuple[Tensor, DTensorSpec | None]:
    """The local tensor of a distributed one, as a leaf, and how that lies."""
    if isinstance(tensor, DTensor):
        return tensor._local_tensor.detach().requires_grad_(tensor.requires_grad), tensor._spec
    return tensor, None


def _unflatten_tensor(tensor: Tensor, spec: DTensorSpec, *, device_handle: Any = None,
                      compute_stream: Any = None) -> DTensor:
    """The distributed tensor of a local one; gradients reach that."""
    result = DTensor.from_local(tensor, spec.mesh, spec.placements, run_check=False,
                                shape=spec.shape, stride=spec.stride)
    if tensor.requires_grad:
        tensor.register_hook(sync_grad_hook)
    return result
