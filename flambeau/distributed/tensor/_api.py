"""`DTensor`: a tensor of which each process has a part."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau.autograd.function import Function
from flambeau.core.tensor import Tensor
from flambeau.distributed.device_mesh import DeviceMesh, _mesh_resources
from flambeau.distributed.tensor._collective_utils import check_tensor_meta, mesh_broadcast
from flambeau.distributed.tensor._dispatch import OpDispatcher
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.distributed.tensor._redistribute import (
    Redistribute,
    grad_placements,
)
from flambeau.distributed.tensor._utils import (
    compute_global_tensor_info,
    compute_local_shape_and_global_offset,
    contiguous,
    normalize_to_torch_size,
)
from flambeau.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)

__all__ = ["DTensor", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand",
           "randn", "zeros"]


class _ToTorchTensor(Function):
    @staticmethod
    def forward(ctx: Any, input: Any, grad_placements: Sequence[Placement] | None) -> Tensor:
        ctx.spec, ctx.grad_placements = input._spec, grad_placements
        return input._local_tensor.view_as(input._local_tensor)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        spec = ctx.spec
        wanted = tuple(ctx.grad_placements or grad_placements(spec.placements))
        meta = TensorMeta(spec.shape, contiguous(spec.shape), grad_output.dtype)
        return DTensor(grad_output, DTensorSpec(spec.mesh, wanted, meta),
                       requires_grad=grad_output.requires_grad), None


class _FromTorchTensor(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, device_mesh: DeviceMesh,
                placements: tuple[Placement, ...], run_check: bool, shape: Any = None,
                stride: tuple[int, ...] | None = None,
                grad_placements: tuple[Placement, ...] | None = None) -> DTensor:
        ctx.mesh, ctx.placements = device_mesh, grad_placements or placements
        shape, stride = _global_size(input, device_mesh, placements, shape, stride)
        if device_mesh.get_coordinate() is None:
            input = input.new_empty(0, requires_grad=input.requires_grad)
        elif run_check:
            check_tensor_meta(input)
            for i, placement in enumerate(placements):
                if placement.is_replicate():
                    input = input.contiguous()
                    mesh_broadcast(input, device_mesh, mesh_dim=i)
        meta = TensorMeta(flambeau.Size(shape), tuple(stride), input.dtype)
        return DTensor(input.view_as(input), DTensorSpec(device_mesh, placements, meta),
                       requires_grad=input.requires_grad)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        if grad_output.placements != ctx.placements:
            wanted = grad_placements(ctx.placements)
            if grad_output.placements != wanted:
                grad_output = Redistribute.apply(grad_output, ctx.mesh, wanted)
        return grad_output.to_local(), None, None, None, None, None, None


def _global_size(tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], shape: Any,
                 stride: Any) -> tuple[Any, Any]:
    if shape is not None and stride is not None:
        return shape, stride
    if shape is not None or stride is not None:
        raise RuntimeError(f"Found shape:{shape}, stride:{stride}.",
                           "Please pass both shape and stride at the same time.")
    return compute_global_tensor_info(tensor, mesh, placements)


def _normalized(placements: Sequence[Placement], ndim: int) -> tuple[Placement, ...]:
    """Placements whose dimensions count from the left."""
    found: list[Placement] = []
    for placement in placements:
        if isinstance(placement, (Shard, _StridedShard)) and placement.dim < 0:
            dim = placement.dim + ndim
            placement = Shard(dim) if isinstance(placement, Shard) else _StridedShard(
                dim, split_factor=placement.split_factor)
        found.append(placement)
    return tuple(found)


class DTensor(Tensor):
    """A tensor of which each process of a mesh has a part: `to_local()`, placed as `placements`
    say. Its shape is that of the whole."""

    _op_dispatcher: OpDispatcher = OpDispatcher()
    _local_tensor: Tensor
    _spec: DTensorSpec
    __torch_function__ = flambeau._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, local_tensor: Tensor, spec: DTensorSpec, *, requires_grad: bool) -> DTensor:
        assert spec.tensor_meta is not None, "TensorMeta should not be None!"
        self = Tensor._make_wrapper_subclass(
            cls, spec.shape, strides=spec.stride, dtype=local_tensor.dtype,
            device=local_tensor.device, layout=local_tensor.layout, requires_grad=requires_grad)
        self._spec = spec
        self._local_tensor = local_tensor.detach() if local_tensor.requires_grad else local_tensor
        return self

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return DTensor._op_dispatcher.dispatch(func, tuple(args), kwargs or {})

    # ---- to and from local tensors --------------------------------------------------------------

    @staticmethod
    def from_local(local_tensor: Tensor, device_mesh: DeviceMesh | None = None,
                   placements: Sequence[Placement] | None = None, *, run_check: bool = False,
                   shape: Any = None, stride: tuple[int, ...] | None = None,
                   grad_placements: Sequence[Placement] | None = None) -> DTensor:
        """The tensor of which this process has `local_tensor`; gradients reach it. The pieces are
        of one size, unless `shape` and `stride` say what the whole is like."""
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("the local_tensor argument only accepts torch.Tensor but got "
                               f"{type(local_tensor)} value.")
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        given = [Replicate()] * mesh.ndim if placements is None else list(placements)
        placed = _normalized(given, local_tensor.ndim)
        for i, placement in enumerate(placed):
            if isinstance(placement, Shard) and placement.dim >= local_tensor.ndim:
                raise RuntimeError(f"Sharding dim {placement.dim} greater than tensor ndim "
                                   f"{local_tensor.ndim} for placement number {i}")
        _check_count(placed, mesh)
        return _FromTorchTensor.apply(local_tensor, mesh, placed, run_check, shape, stride,
                                      None if grad_placements is None else tuple(grad_placements))

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """What this process has; gradients flow back, placed as `grad_placements` say."""
        if not flambeau.is_grad_enabled():
            return self._local_tensor
        if grad_placements is not None:
            grad_placements = tuple(grad_placements)
        return _ToTorchTensor.apply(self, grad_placements)

    def redistribute(self, device_mesh: DeviceMesh | None = None,
                     placements: Sequence[Placement] | None = None, *, async_op: bool = False,
                     forward_dtype: Any = None, backward_dtype: Any = None) -> DTensor:
        """The same tensor placed in another way."""
        mesh = device_mesh or self.device_mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placed = _normalized(placements, self.ndim)
        _check_count(placed, mesh)
        for placement, current in zip(placed, self.placements):
            if isinstance(placement, Partial) and current != placement:
                raise RuntimeError(f"Can not redistribute from {current} to {placement}, "
                                   "redistributing to Partial is for internal use only!")
            if isinstance(placement, Shard) and placement.dim >= self.ndim:
                raise IndexError(f"Shard({placement.dim}) of a tensor of {self.ndim} dimensions")
        if mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        return Redistribute.apply(self, mesh, placed, async_op, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole, in each process."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return _ToTorchTensor.apply(whole, grad_placements)

    # ---- what it is -----------------------------------------------------------------------------

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of processes."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """A placement for each dimension of the mesh."""
        return self._spec.placements

    def _elementwise_parts(self, *others: Tensor) -> list[Tensor] | None:
        """The local tensors of this one and of others that lie alike: what works element by
        element can work on these. None if they do not, or if there are terms."""
        spec = self._spec
        if not spec.shape or any(p.is_partial() for p in spec.placements):
            return None
        for other in others:
            if not isinstance(other, DTensor) or other.shape != spec.shape \
                    or other.placements != spec.placements or other.device_mesh != spec.mesh:
                return None
        return [t._local_tensor for t in (self, *others)]       # type: ignore[attr-defined]

    def _elementwise_whole(self, local: Tensor) -> DTensor:
        """The distributed tensor of a local one that lies as this one does."""
        return distributed_as(self._spec, local)

    def _raise_if_contains_partial_placements(self) -> None:
        for placement in self.placements:
            if not isinstance(placement, Partial):
                continue
            raise ValueError("Any checkpointing related operations are not supported for DTensor "
                             "with partial placements!")

    def __create_write_items__(self, fqn: str, object: Any) -> Any:
        self._raise_if_contains_partial_placements()
        from flambeau.distributed.checkpoint.planner_helpers import (
            _create_write_items_for_dtensor,
        )
        if hasattr(self._local_tensor, "__create_write_items__"):
            return self._local_tensor.__create_write_items__(fqn, object)
        return [_create_write_items_for_dtensor(fqn, object)]

    def __create_chunk_list__(self) -> Any:
        self._raise_if_contains_partial_placements()
        from flambeau.distributed.checkpoint.planner_helpers import _create_chunk_from_dtensor
        if hasattr(self._local_tensor, "__create_chunk_list__"):
            return self._local_tensor.__create_chunk_list__()
        return [_create_chunk_from_dtensor(self)]

    def __get_tensor_shard__(self, index: Any) -> Tensor:
        self._raise_if_contains_partial_placements()
        if hasattr(self._local_tensor, "__get_tensor_shard__"):
            return self._local_tensor.__get_tensor_shard__(index)
        return self.to_local()

    def __tensor_flatten__(self) -> Any:
        spec = self._spec
        return ["_local_tensor"], (spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict[str, Tensor], flatten_spec: Any, outer_size: Any,
                             outer_stride: Any) -> DTensor:
        spec, requires_grad = flatten_spec
        local = inner_tensors["_local_tensor"]
        meta = TensorMeta(outer_size, outer_stride, local.dtype)
        return DTensor(local, DTensorSpec(spec.mesh, spec.placements, meta),
                       requires_grad=requires_grad)

    def __coerce_tangent_metadata__(self) -> DTensor:
        if not any(isinstance(p, Partial) for p in self.placements):
            return self
        return self.redistribute(placements=grad_placements(self.placements))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (self._local_tensor, self._spec, self.requires_grad,
                          getattr(self, "_is_param", False))

    def __deepcopy__(self, memo: dict[int, Any]) -> DTensor:
        if id(self) not in memo:
            memo[id(self)] = _rebuilt(self._local_tensor.clone(), self._spec, self.requires_grad,
                                      getattr(self, "_is_param", False))
        return memo[id(self)]

    def __repr__(self) -> str:
        return (f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, "
                f"placements={self.placements})")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.full_tensor(), spec) if spec else repr(self)


def _rebuilt(local: Tensor, spec: DTensorSpec, requires_grad: bool, is_parameter: bool) -> Any:
    found = DTensor(local, spec, requires_grad=requires_grad)
    return flambeau.nn.Parameter(found, requires_grad) if is_parameter else found


def _check_count(placements: Sequence[Placement], mesh: DeviceMesh) -> None:
    if len(placements) != mesh.ndim:
        raise ValueError("`placements` must have the same length as `device_mesh.ndim`! Found "
                         f"placements length: {len(placements)}, and device_mesh.ndim: "
                         f"{mesh.ndim}.")


# ---- distributing -------------------------------------------------------------------------------

def distribute_tensor(tensor: Tensor, device_mesh: DeviceMesh | None = None,
                      placements: Sequence[Placement] | None = None, *,
                      src_data_rank: int | None = 0) -> DTensor:
    """`tensor`, a leaf, spread over a mesh: that of process `src_data_rank` along each dimension
    (None: each process has the same). Replicated where no placements are given."""
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but "
                           "found non-leaf tensor!")
    given = [Replicate()] * mesh.ndim if placements is None else list(placements)
    _check_count(given, mesh)
    if isinstance(tensor, DTensor):
        return _already(tensor, mesh, given)  # type: ignore[arg-type]
    placed = _normalized(given, tensor.ndim)
    local = tensor.detach()
    for i, placement in enumerate(placed):
        if isinstance(placement, (Shard, _StridedShard)):
            if not 0 <= placement.dim < tensor.ndim:
                raise IndexError(f"Dimension out of range (expected to be in range of "
                                 f"[{-tensor.ndim}, {tensor.ndim - 1}], but got {placement.dim})")
            local = placement._shard_tensor(local, mesh, i, src_data_rank)
        elif isinstance(placement, Replicate):
            local = placement._replicate_tensor(local, mesh, i, src_data_rank)
        elif isinstance(placement, Partial):
            local = Replicate()._replicate_tensor(local, mesh, i, src_data_rank)
            local = placement._partition_value(local, mesh, i)
        else:
            raise RuntimeError(f"Trying to distribute tensor with unsupported placements "
                               f"{placement} on device mesh dimension {i}!")
    meta = TensorMeta(tensor.size(), tensor.stride(), tensor.dtype)
    found = DTensor(local, DTensorSpec(mesh, placed, meta), requires_grad=tensor.requires_grad)
    if isinstance(tensor, flambeau.nn.Parameter):
        return flambeau.nn.Parameter(found, tensor.requires_grad)  # type: ignore[return-value]
    return found


def _already(tensor: DTensor, mesh: DeviceMesh, placements: list[Placement]) -> DTensor:
    if tensor.device_mesh != mesh:
        raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a "
                         f"different device mesh {mesh}.")
    if tensor.placements != _normalized(placements, tensor.ndim):
        raise ValueError(f"Cannot distribute a DTensor with placements {tensor.placements} to a "
                         f"different placements {placements}. do you want to call `redistribute` "
                         "instead?")
    return tensor


def _shard_tensor(full_tensor: Tensor, placements: Sequence[Shard],
                  device_mesh: DeviceMesh | None = None) -> DTensor:
    """This process's piece of a tensor that all have, without communication."""
    return distribute_tensor(full_tensor, device_mesh, placements, src_data_rank=None)


def from_local(local_tensor: Tensor, device_mesh: DeviceMesh | None = None,
               placements: Sequence[Placement] | None = None, *, run_check: bool = False,
               shape: Any = None, stride: tuple[int, ...] | None = None,
               grad_placements: Sequence[Placement] | None = None) -> DTensor:
    """`DTensor.from_local`, as a function."""
    return DTensor.from_local(local_tensor, device_mesh, placements, run_check=run_check,
                              shape=shape, stride=stride, grad_placements=grad_placements)


def distribute_module(module: Any, device_mesh: DeviceMesh | None = None,
                      partition_fn: Callable[..., None] | None = None,
                      input_fn: Callable[..., Any] | None = None,
                      output_fn: Callable[..., Any] | None = None) -> Any:
    """A module whose parameters and buffers are `DTensor`s: as `partition_fn(name, module, mesh)`
    places them, the rest replicated. `input_fn` and `output_fn` see what goes in and comes out."""
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError("distribute_module should only be called once on a module, but it has "
                           "already been called on this module!")
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        _replicate_rest(part, mesh)
    if input_fn is not None:
        _register(module.register_forward_pre_hook, input_fn, mesh, 3, "input_fn")
    if output_fn is not None:
        _register(module.register_forward_hook, output_fn, mesh, 3, "output_fn")
    module._distribute_module_applied = True
    return module


def _replicate_rest(module: Any, mesh: DeviceMesh) -> None:
    """Make the parameters and buffers of a module, that are none yet, replicated `DTensor`s."""
    for key, parameter in module._parameters.items():
        if parameter is not None and not isinstance(parameter, DTensor):
            module.register_parameter(key, flambeau.nn.Parameter(
                distribute_tensor(parameter.detach(), mesh), parameter.requires_grad))
    for key, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[key] = distribute_tensor(buffer, mesh)


def _register(hook: Callable[..., Any], function: Callable[..., Any], mesh: DeviceMesh,
              arguments: int, name: str) -> None:
    """Have a function called with the module, what goes in or comes out, and the mesh; an older
    form does not take the module."""
    import inspect
    import warnings
    count = len(inspect.signature(function).parameters)
    output = name == "output_fn"
    if count == arguments - 1:
        warnings.warn(f"Deprecating {name} that takes two arguments (inputs, device_mesh), please "
                      f"use {name} that takes in (module, inputs, device_mesh) instead!",
                      FutureWarning, stacklevel=3)
    elif count != arguments:
        raise ValueError(f"{name} should take in 3 arguments, but got {count} arguments!")
    own = count == arguments
    if output:
        hook(lambda m, _, found: function(m, found, mesh) if own else function(found, mesh))
    else:
        hook(lambda m, given: function(m, given, mesh) if own else function(given, mesh))


def distributed_as(spec: DTensorSpec, local: Tensor) -> DTensor:
    """The distributed tensor of a local one, in the places that `spec` says."""
    meta = TensorMeta(spec.shape, spec.stride, local.dtype)
    return DTensor(local, DTensorSpec(spec.mesh, spec.placements, meta), requires_grad=False)


# ---- making distributed tensors -----------------------------------------------------------------

def _dtensor_init_helper(init_op: Callable[..., Tensor], size: Any,
                         device_mesh: DeviceMesh | None = None,
                         placements: Sequence[Placement] | None = None, **kwargs: Any) -> DTensor:
    """This process's piece of a new tensor, made where it is."""
    if kwargs.pop("layout", flambeau.strided) is not flambeau.strided:
        raise AssertionError("layout value not supported!")
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    given = [Replicate()] * mesh.ndim if placements is None else list(placements)
    placed = _normalized(given, len(size))
    _check_count(placed, mesh)
    requires_grad = kwargs.pop("requires_grad", False)
    shape, _ = compute_local_shape_and_global_offset(size, mesh, placed)
    if init_op is flambeau.full:
        local = init_op(shape, kwargs.pop("fill_value"), **kwargs)
    else:
        local = init_op(shape, **kwargs)
    meta = TensorMeta(flambeau.Size(size), contiguous(size), local.dtype)
    return DTensor(local, DTensorSpec(mesh, placed, meta), requires_grad=requires_grad)


def ones(*size: Any, dtype: Any = None, layout: Any = flambeau.strided,
         requires_grad: bool = False, device_mesh: DeviceMesh | None = None,
         placements: Sequence[Placement] | None = None) -> DTensor:
    """`flambeau.ones`, spread over a mesh."""
    return _dtensor_init_helper(flambeau.ones, normalize_to_torch_size(size), device_mesh,
                                placements, dtype=dtype, layout=layout,
                                requires_grad=requires_grad)


def empty(*size: Any, dtype: Any = None, layout: Any = flambeau.strided,
          requires_grad: bool = False, device_mesh: DeviceMesh | None = None,
          placements: Sequence[Placement] | None = None) -> DTensor:
    """`flambeau.empty`, spread over a mesh."""
    return _dtensor_init_helper(flambeau.empty, normalize_to_torch_size(size), device_mesh,
                                placements, dtype=dtype, layout=layout,
                                requires_grad=requires_grad)


def full(size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = flambeau.strided,
         requires_grad: bool = False, device_mesh: DeviceMesh | None = None,
         placements: Sequence[Placement] | None = None) -> DTensor:
    """`flambeau.full`, spread over a mesh."""
    return _dtensor_init_helper(flambeau.full, normalize_to_torch_size(size), device_mesh,
                                placements, fill_value=fill_value, dtype=dtype, layout=layout,
                                requires_grad=requires_grad)


def rand(*size: Any, requires_grad: bool = False, dtype: Any = None,
         layout: Any = flambeau.strided, device_mesh: DeviceMesh | None = None,
         placements: Sequence[Placement] | None = None) -> DTensor:
    """`flambeau.rand`, spread over a mesh: each process draws its piece."""
    return _dtensor_init_helper(flambeau.rand, normalize_to_torch_size(size), device_mesh,
                                placements, dtype=dtype, layout=layout,
                                requires_grad=requires_grad)


def randn(*size: Any, requires_grad: bool = False, dtype: Any = None,
          layout: Any = flambeau.strided, device_mesh: DeviceMesh | None = None,
          placements: Sequence[Placement] | None = None) -> DTensor:
    """`flambeau.randn`, spread over a mesh: each process draws its piece."""
    return _dtensor_init_helper(flambeau.randn, normalize_to_torch_size(size), device_mesh,
                                placements, dtype=dtype, layout=layout,
                                requires_grad=requires_grad)


def zeros(*size: Any, requires_grad: bool = False, dtype: Any = None,
          layout: Any = flambeau.strided, device_mesh: DeviceMesh | None = None,
          placements: Sequence[Placement] | None = None) -> DTensor:
    """`flambeau.zeros`, spread over a mesh."""
    return _dtensor_init_helper(flambeau.zeros, normalize_to_torch_size(size), device_mesh,
                                placements, dtype=dtype, layout=layout,
                                requires_grad=requires_grad)


DTensor.__module__ = "torch.distributed.tensor"
