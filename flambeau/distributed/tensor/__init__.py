"""Tensors spread over a mesh of processes, for one process.

In a mesh of one, every placement means that the process has the whole: a `DTensor` is its local
tensor with a mesh and placements, and operations on it are those on the local tensor. Their results
are `Replicate`, which is always true here.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
           "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]


class DTensor(Tensor):
    """A tensor with the mesh that it lies on and a placement for each dimension of the mesh."""

    _mesh: Any = None
    _placements: tuple[Placement, ...] = ()

    @staticmethod
    def from_local(local_tensor: Tensor, device_mesh: Any = None,
                   placements: Sequence[Placement] | None = None, *, run_check: bool = False,
                   shape: Any = None, stride: Any = None) -> DTensor:
        """The tensor of which this process has `local_tensor`; gradients reach it."""
        if device_mesh is None:
            raise NotImplementedError("DTensor.from_local without a mesh: make one with "
                                      "init_device_mesh")
        return _placed(local_tensor.as_subclass(DTensor), device_mesh, placements)

    @property
    def device_mesh(self) -> Any:
        """The mesh of processes."""
        return self._mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """A placement for each dimension of the mesh."""
        return self._placements

    @property
    def _local_tensor(self) -> Tensor:
        return self.as_subclass(Tensor)

    def to_local(self, *, grad_placements: Any = None) -> Tensor:
        """What this process has."""
        return self._local_tensor

    def full_tensor(self, *, grad_placements: Any = None) -> Tensor:
        """The whole."""
        return self._local_tensor

    def redistribute(self, device_mesh: Any = None, placements: Any = None, *,
                     async_op: bool = False, forward_dtype: Any = None,
                     backward_dtype: Any = None) -> DTensor:
        """The same tensor placed in another way."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        return _placed(self.view_as(self), device_mesh or self._mesh, placements)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs or {})
        mesh = next((a._mesh for a in args if isinstance(a, DTensor) and a._mesh), None)
        for one in result if isinstance(result, (tuple, list)) else (result,):
            if mesh is not None and isinstance(one, DTensor) and one._mesh is None:
                _placed(one, mesh, None)
        return result

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return (f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._mesh}, "
                f"placements={self._placements})")


DTensor.__module__ = "torch.distributed.tensor"


def _placed(tensor: Any, mesh: Any, placements: Sequence[Placement] | None) -> DTensor:
    given = (Replicate(),) * mesh.ndim if placements is None else tuple(placements)
    if len(given) != mesh.ndim:
        raise ValueError("`placements` must have the same length as `device_mesh.ndim`! Found "
                         f"placements length: {len(given)}, and device_mesh.ndim: {mesh.ndim}.")
    tensor._mesh = mesh
    tensor._placements = tuple([Shard(p.dim % tensor.dim()) if type(p) is Shard else p
                                for p in given])
    return tensor


def distribute_tensor(tensor: Tensor, device_mesh: Any = None,
                      placements: Sequence[Placement] | None = None, *,
                      src_data_rank: int | None = 0) -> DTensor:
    """`tensor`, a leaf, spread over a mesh; replicated where no placements are given."""
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but "
                           "found non-leaf tensor!")
    result = _placed(tensor.detach().as_subclass(DTensor), device_mesh, placements)
    return result.requires_grad_(tensor.requires_grad)


def distribute_module(module: Any, device_mesh: Any = None,
                      partition_fn: Callable[..., None] | None = None,
                      input_fn: Callable[..., Any] | None = None,
                      output_fn: Callable[..., Any] | None = None) -> Any:
    """A module whose parameters and buffers are `DTensor`s: as `partition_fn(name, module, mesh)`
    places them, the rest replicated. `input_fn` and `output_fn` see what goes in and comes out."""
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, device_mesh)
        for key, parameter in part._parameters.items():
            if parameter is not None and not isinstance(parameter, DTensor):
                part.register_parameter(key, flambeau.nn.Parameter(
                    distribute_tensor(parameter.detach(), device_mesh),
                    parameter.requires_grad))
        for key, buffer in part._buffers.items():
            if buffer is not None and not isinstance(buffer, DTensor):
                part._buffers[key] = distribute_tensor(buffer, device_mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, _, outputs: output_fn(m, outputs, device_mesh))
    return module


def _creating(name: str) -> Callable[..., DTensor]:
    def function(*size: Any, device_mesh: Any = None,
                 placements: Sequence[Placement] | None = None, **options: Any) -> DTensor:
        made = getattr(flambeau, name)(*size, **options)
        return distribute_tensor(made, device_mesh, placements)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`flambeau.{name}`, spread over a mesh."
    return function


empty, full, ones, rand, randn, zeros = map(_creating, ("empty", "full", "ones", "rand", "randn",
                                                        "zeros"))
