"""`FSDPParam`: one parameter, cut, and whole."""
from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from math import prod
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.fsdp._fully_shard._fsdp_api import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from flambeau.distributed.fsdp._fully_shard._fsdp_common import (
    FSDPMeshInfo,
    HSDPMeshInfo,
    resolve_shard_placement,
)
from flambeau.distributed.tensor import DTensor, Replicate, Shard
from flambeau.distributed.tensor._api import distributed_as
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.distributed.tensor.placement_types import (
    Placement,
    _shard_size_and_offset,
    _StridedShard,
)


class ShardedState(Enum):
    """What a module has of a parameter: a piece; a larger piece, after a forward pass; all."""
    SHARDED = auto()
    SHARDED_POST_FORWARD = auto()
    UNSHARDED = auto()


@dataclass
class ParamModuleInfo:
    """Whose parameter it is; others may have it, too."""
    module: nn.Module
    param_name: str
    shared_modules: list[nn.Module] = field(default_factory=list)
    shared_param_names: list[str] = field(default_factory=list)

    def places(self) -> list[tuple[nn.Module, str]]:
        """All who have it, and under which names."""
        return [(self.module, self.param_name), *zip(self.shared_modules, self.shared_param_names)]


def unsafe_setattr_param(module: nn.Module, param_name: str, param: Tensor) -> None:
    """Let a module have another tensor in the place of a parameter, whatever it is."""
    module._parameters[param_name] = param


class Memory:
    """Memory whose pages go back to the system when it is freed, while its address stays: what a
    graph has saved keeps its place, and finds the values there again once they are gathered."""

    def __init__(self, count: int, dtype: flambeau.dtype):
        self.count, self.dtype = count, dtype
        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} \
            if hasattr(mmap, "MAP_PRIVATE") else {}
        self._map = mmap.mmap(-1, max(count * dtype.itemsize, 1), **private)

    def tensor(self) -> Tensor:
        """A tensor on the memory, which knows of no others."""
        if not self.count:
            return flambeau.empty(0, dtype=self.dtype)
        bytes_ = flambeau.frombuffer(self._map, dtype=flambeau.uint8)
        return bytes_[:self.count * self.dtype.itemsize].view(self.dtype).data

    def free(self) -> None:
        """Give the pages back: the values are gone."""
        if hasattr(self._map, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


class FSDPParam:
    """One parameter: the piece that this process keeps, a `DTensor`, and the whole while a module
    needs it. A parameter that is a `DTensor` already is cut further."""

    def __init__(self, param: nn.Parameter, module_info: ParamModuleInfo,
                 mesh_info: FSDPMeshInfo, post_forward_mesh_info: FSDPMeshInfo | None,
                 device: flambeau.device,
                 shard_placement_fn: Callable[[nn.Parameter], Any] | None,
                 mp_policy: MixedPrecisionPolicy, offload_policy: OffloadPolicy):
        self._module_info = module_info
        self.mesh_info, self.post_forward_mesh_info = mesh_info, post_forward_mesh_info
        self.mp_policy, self.device = mp_policy, device
        self.offload_to_cpu = isinstance(offload_policy, CPUOffloadPolicy)
        self.requires_grad = param.requires_grad
        self.unsharded_accumulated_grad: Tensor | None = None
        self.sharded_state = ShardedState.SHARDED
        self._param_fqn: str | None = None
        self._memory: Memory | None = None
        self._post_forward: DTensor | None = None
        self._init_sharded_param(param, shard_placement_fn)

    # ---- cutting --------------------------------------------------------------------------------

    def _init_sharded_param(self, param: nn.Parameter,
                            shard_placement_fn: Callable[[nn.Parameter], Any] | None) -> None:
        if not param.is_contiguous():
            raise NotImplementedError("FSDP does not support non-contiguous parameters yet: "
                                      f"param.shape={param.shape} param.stride()={param.stride()}")
        placement = self._choose_placement(param, shard_placement_fn)
        self.dim = placement.dim
        whole: Tensor = param.detach()
        self._tp_spec: DTensorSpec | None = None
        self.is_dtensor = isinstance(param, DTensor)
        if isinstance(param, DTensor):
            whole, self._tp_spec = param._local_tensor, param._spec
        self._shape, self.orig_dtype = whole.shape, whole.dtype
        mesh = getattr(self.mesh_info, "shard_mesh_size", 1)
        if self.dim > 0 and whole.shape[self.dim] % mesh:
            raise NotImplementedError(f"FSDP does not support uneven sharding on dim {self.dim}: "
                                      f"{whole.size()} (world size: {mesh})")
        meta = TensorMeta(param.size(), param.stride(), param.dtype)
        self._sharding_spec = self._init_sharding_spec(placement, meta)
        rank = getattr(self.mesh_info, "shard_mesh_rank", 0)
        size, start = _shard_size_and_offset(whole.shape[self.dim], mesh, rank)
        local = whole.narrow(self.dim, start, size).clone(
            memory_format=flambeau.contiguous_format)
        self.sharded_param: Any = self._as_parameter(local)
        self._setattr_on_modules(self.sharded_param)

    def _choose_placement(self, param: nn.Parameter,
                          shard_placement_fn: Callable[[nn.Parameter], Any] | None) -> Shard:
        chosen = shard_placement_fn(param) if shard_placement_fn is not None else None
        if chosen is None:
            chosen = Shard(0)
        if not isinstance(chosen, Placement):
            if not hasattr(chosen, "mesh_info"):
                raise ValueError(f"Invalid shard_placement_fn result: {chosen}")
            found = resolve_shard_placement(chosen, self.mesh_info)
            chosen, self.mesh_info = found.placement, found.mesh_info
        if not isinstance(chosen, Shard):
            raise ValueError(f"Invalid shard_placement_fn result: {chosen}")
        return Shard(chosen.dim + param.ndim) if chosen.dim < 0 else chosen

    def _init_sharding_spec(self, placement: Shard, meta: TensorMeta) -> DTensorSpec:
        mesh, tp = self.mesh_info.mesh, self._tp_spec
        own: Placement = placement
        if tp is not None:
            cuts = [tp.mesh.size(i) for i, p in enumerate(tp.placements)
                    if p.is_shard(placement.dim)]
            own = _StridedShard(placement.dim, split_factor=prod(cuts)) if cuts else placement
            mesh = self._joined_mesh(mesh, tp.mesh)
        placements = [Replicate()] * self.mesh_info.mesh.ndim
        if self.mesh_info.shard_mesh_dim is not None:
            placements[self.mesh_info.shard_mesh_dim] = own     # type: ignore[call-overload]
        return DTensorSpec(mesh, (*placements, *(tp.placements if tp is not None else ())), meta)

    @staticmethod
    def _joined_mesh(dp_mesh: DeviceMesh, tp_mesh: DeviceMesh) -> DeviceMesh:
        roots = dp_mesh._get_root_mesh(), tp_mesh._get_root_mesh()
        if roots[0] != roots[1]:
            raise AssertionError("FSDP requires the DP and model parallel TP/EP mesh to have the "
                                 f"same parent mesh but got: \nDP's global mesh: {roots[0]}\n"
                                 f"TP/EP's global mesh: {roots[1]}")
        if dp_mesh.mesh_dim_names is None or tp_mesh.mesh_dim_names is None:
            raise AssertionError("FSDP requires the DP and model parallel TP/EP meshes to have "
                                 "mesh_dim_names")
        return DeviceMesh._concatenate([dp_mesh, tp_mesh])

    def _as_parameter(self, local: Tensor) -> nn.Parameter:
        return nn.Parameter(self.to_sharded_dtensor(local), self.requires_grad)

    def to_sharded_dtensor(self, tensor: Tensor) -> DTensor:
        """A piece, or a gradient of one, as the distributed tensor that it is of."""
        return distributed_as(self._sharding_spec, tensor)

    # ---- gathering ------------------------------------------------------------------------------

    @property
    def param_dtype(self) -> flambeau.dtype:
        """The type in which the module uses the parameter."""
        return self.mp_policy.param_dtype or self.orig_dtype

    def _rows(self, count: int) -> int:
        """How long each process's piece is at most."""
        return -(-self._shape[self.dim] // count)

    def adopt(self) -> None:
        """The module may have got another parameter since: by `to`, or by loading a state."""
        module, name = self._module_info.module, self._module_info.param_name
        current = module._parameters[name]
        if current is not self.sharded_param and isinstance(current, DTensor):
            self.sharded_param = current
            self._setattr_on_modules(current)
        if self.sharded_param.dtype is not self.orig_dtype:
            self.orig_dtype, self._memory = self.sharded_param.dtype, None

    def _source(self) -> tuple[Tensor, int]:
        """The piece that is sent, and among how many processes."""
        if self.sharded_state is ShardedState.SHARDED_POST_FORWARD:
            return self._post_forward._local_tensor, \
                self.post_forward_mesh_info.shard_mesh_size
        return self.sharded_param._local_tensor, \
            getattr(self.mesh_info, "shard_mesh_size", 1)

    def all_gather_input(self) -> Tensor:
        """This process's piece, flat, as long as everybody's."""
        piece, count = self._source()
        piece = piece.detach().to(self.param_dtype)
        missing = self._rows(count) - piece.shape[self.dim]
        if missing:
            shape = list(piece.shape)
            shape[self.dim] = missing
            piece = flambeau.cat([piece, piece.new_zeros(shape)], self.dim)
        return piece.reshape(-1)

    def take_all_gather_output(self, rows: Tensor) -> None:
        """Keep the pieces of all processes, a row of each."""
        count = rows.shape[0]
        shape = list(self._shape)
        shape[self.dim] = self._rows(count)
        pieces = rows.view(count, *shape)
        target = self._unsharded_memory().tensor().view(self._shape)
        if self.dim == 0:
            full, rest = divmod(self._shape[0], shape[0]) if shape[0] else (0, 0)
            target[:full * shape[0]].view(full, *shape).copy_(pieces[:full])
            if rest:
                target[full * shape[0]:].copy_(pieces[full][:rest])
        else:
            flambeau.cat(pieces.unbind(), self.dim, out=target)

    def _unsharded_memory(self) -> Memory:
        if self._memory is None:
            self._memory = Memory(prod(self._shape), self.param_dtype)
        return self._memory

    def unsharded_local(self) -> Tensor:
        """The whole, without what other meshes cut, a new tensor on the memory."""
        return self._unsharded_memory().tensor().view(self._shape)

    def unsharded(self, local: Tensor) -> Tensor:
        """The whole as the module uses it; gradients reach `local`."""
        if self._tp_spec is None:
            return local
        spec = self._tp_spec
        return DTensor.from_local(local, spec.mesh, spec.placements, run_check=False,
                                  shape=spec.shape, stride=spec.stride)

    def free(self) -> None:
        """Give the memory of the whole back."""
        if self._memory is not None:
            self._memory.free()

    # ---- what the module has --------------------------------------------------------------------

    def _setattr_on_modules(self, param: Tensor) -> None:
        for module, name in self._module_info.places():
            unsafe_setattr_param(module, name, param)

    def to_sharded(self) -> None:
        """Let the module have the piece."""
        self._setattr_on_modules(self.sharded_param)
        self._post_forward = None
        self.sharded_state = ShardedState.SHARDED

    def to_unsharded(self, whole: Tensor) -> None:
        """Let the module have the whole."""
        self._setattr_on_modules(whole)
        self._post_forward = None
        self.sharded_state = ShardedState.UNSHARDED

    def to_sharded_post_forward(self) -> None:
        """Let the module have a piece of those that fewer processes share."""
        info = self.post_forward_mesh_info
        assert isinstance(info, HSDPMeshInfo)
        whole = self.unsharded_local()
        size, start = _shard_size_and_offset(self._shape[self.dim], info.shard_mesh_size,
                                             info.shard_mesh_rank)
        local = whole.narrow(self.dim, start, size).clone()
        meta = TensorMeta(self._shape, whole.stride(), local.dtype)
        self._post_forward = DTensor(
            local, DTensorSpec(info.mesh, (Replicate(), Shard(self.dim)), meta),
            requires_grad=self.requires_grad)
        self._setattr_on_modules(self._post_forward)
        self.sharded_state = ShardedState.SHARDED_POST_FORWARD

    # ---- gradients ------------------------------------------------------------------------------

    def accumulate(self, grad: Tensor | None) -> Tensor | None:
        """A gradient of the whole, with those that were not shared before."""
        waiting, self.unsharded_accumulated_grad = self.unsharded_accumulated_grad, None
        if grad is None or waiting is None:
            return waiting if grad is None else grad
        return waiting + grad.to(waiting.dtype)

    def keep(self, grad: Tensor | None, dtype: flambeau.dtype) -> None:
        """Keep a gradient that is not shared yet."""
        total = self.accumulate(None if grad is None else grad.to(dtype))
        self.unsharded_accumulated_grad = None if total is None else total.detach()

    def reduce_scatter_input(self, grad: Tensor, count: int) -> Tensor:
        """The pieces of a gradient, a row for each process."""
        rows = self._rows(count)
        missing = rows * count - self._shape[self.dim]
        if missing:
            shape = list(grad.shape)
            shape[self.dim] = missing
            grad = flambeau.cat([grad, grad.new_zeros(shape)], self.dim)
        if self.dim:
            grad = flambeau.stack(grad.chunk(count, self.dim))
        return grad.reshape(count, -1)

    def sharded_numel(self, count: int) -> int:
        """How many numbers each process gets of a gradient."""
        rest = prod(n for d, n in enumerate(self._shape) if d != self.dim)
        return rest * self._rows(count)

    def take_reduced(self, flat: Tensor) -> DTensor:
        """The gradient of the piece."""
        local = self.sharded_param._local_tensor
        own = flat[:local.numel()].view(local.shape) if self.dim == 0 else flat.view(local.shape)
        return self.to_sharded_dtensor(own.to(self.orig_dtype))
