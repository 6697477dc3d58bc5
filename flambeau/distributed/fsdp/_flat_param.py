"""`FlatParamHandle`: the parameters of a module as one flat one, of which each process has a part.

The parameters, one after the other, make a flat tensor, which is padded and cut into equal parts.
`gather` makes the flat tensor whole, in memory that is given back to the system when the module
is done: what the graph has saved keeps its place in it, and finds the values again when they have
been gathered for the backward pass.
"""
from __future__ import annotations

import mmap
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor, nn
from flambeau.autograd.function import Function
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.fsdp._common_utils import HandleTrainingState, _set_fsdp_flattened

__all__ = ["FlatParamHandle", "FlatParamShardMetadata", "FlatParameter", "HandleShardingStrategy",
           "ParamInfo", "SharedParamInfo"]


class HandleShardingStrategy(Enum):
    """How the parameters of a handle are sharded: see `ShardingStrategy`."""
    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


RESHARD_AFTER_FORWARD_HANDLE_STRATEGIES = (HandleShardingStrategy.FULL_SHARD,
                                           HandleShardingStrategy.HYBRID_SHARD)
NO_RESHARD_AFTER_FORWARD_HANDLE_STRATEGIES = (HandleShardingStrategy.SHARD_GRAD_OP,
                                              HandleShardingStrategy._HYBRID_SHARD_ZERO2)


class ParamInfo(NamedTuple):
    """Whose parameter it is."""
    param_name: str
    module: nn.Module
    module_name: str


class SharedParamInfo(NamedTuple):
    """Whose parameter it is, too, and where it was met first."""
    param_name: str
    module: nn.Module
    module_name: str
    prim_param_name: str
    prim_module: nn.Module
    prim_module_name: str


class FlatParamShardMetadata(NamedTuple):
    """The parameters of which this process has a part, and which part."""
    param_names: tuple[str, ...]
    param_shapes: tuple[flambeau.Size, ...]
    param_strides: tuple[tuple[int, ...], ...]
    param_contiguities: tuple[bool, ...]
    param_numels: tuple[int, ...]
    param_offsets: tuple[tuple[int, int], ...]


class FlatParameter(nn.Parameter):
    """This process's part of a flat parameter. `_fqns`, `_shapes` and `_numels` are the names,
    shapes and sizes of the parameters in it."""

    _fqns: tuple[str, ...]
    _shapes: tuple[flambeau.Size, ...]
    _numels: tuple[int, ...]
    _param_infos: tuple[ParamInfo, ...]
    _shared_param_infos: tuple[SharedParamInfo, ...]
    _params: list[nn.Parameter] | None
    _local_shard: Tensor
    _sharded_size: flambeau.Size
    _unpadded_unsharded_size: flambeau.Size


class _Memory:
    """Memory whose pages go back to the system when it is freed, while its address stays."""

    def __init__(self, count: int, dtype: flambeau.dtype):
        size = max(count * dtype.itemsize, 1)
        # Only pages that no other process may see go back to the system.
        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} \
            if hasattr(mmap, "MAP_PRIVATE") else {}
        self._map = mmap.mmap(-1, size, **private)
        whole = flambeau.frombuffer(self._map, dtype=flambeau.uint8)[:count * dtype.itemsize]
        self.tensor = whole.view(dtype) if count else flambeau.empty(0, dtype=dtype)

    def free(self) -> None:
        """Give the pages back: the values are gone."""
        if hasattr(self._map, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


class _Gather(Function):
    """The whole of a flat parameter; backward, this process's part of the mean gradient."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, handle: FlatParamHandle) -> Tensor:
        ctx.handle = handle
        return handle._gathered(local)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        handle = ctx.handle
        handle._unsharded_grad = gradient
        handle._post_backward(handle._state, handle, handle.flat_param)
        reduced, handle._reduced_grad = handle._reduced_grad, None
        return reduced, None


class FlatParamHandle:
    """The parameters of a wrapped module, flat and in parts.

    `params` are those of `fully_sharded_module`, without what modules in it that are wrapped
    themselves have.
    """

    def __init__(self, params: Sequence[nn.Parameter], fully_sharded_module: nn.Module,
                 device: flambeau.device, sharding_strategy: HandleShardingStrategy,
                 offload_params: bool, mp_param_dtype: flambeau.dtype | None,
                 mp_reduce_dtype: flambeau.dtype | None, keep_low_precision_grads: bool,
                 process_group: Any, use_orig_params: bool, *, fsdp_extension: Any = None):
        if not params:
            raise ValueError(f"Cannot construct a {type(self).__name__} with an empty parameter "
                             "list")
        self.process_group = process_group
        self.rank, self.world_size = process_group.rank(), process_group.size()
        self.device, self._sharding_strategy = device, sharding_strategy
        self._offload_params, self._use_orig_params = offload_params, use_orig_params
        self._fully_sharded_module = fully_sharded_module
        self._keep_low_precision_grads = keep_low_precision_grads
        self._training_state = HandleTrainingState.IDLE
        self._state: Any = None
        self._post_backward: Any = None                 # what the runtime does with a gradient
        self._freed = False                             # its memory, though it is used later
        self._unsharded_grad: Tensor | None = None
        self._reduced_grad: Tensor | None = None
        self._waiting_grad: Tensor | None = None        # of passes that were not shared
        self._memories: dict[flambeau.dtype, _Memory] = {}
        self._views: list[Tensor] = []
        self._flatten(set(params), params)
        self._orig_param_dtype = self.flat_param.dtype
        self._fwd_bwd_param_dtype = mp_param_dtype or self._orig_param_dtype
        self._reduce_dtype = mp_reduce_dtype or mp_param_dtype or self._orig_param_dtype

    def __repr__(self) -> str:
        return f"FlatParamHandle(flat_param.fqns={self.flat_param._fqns})"

    # ---- flattening -----------------------------------------------------------------------------

    def _flatten(self, wanted: set[nn.Parameter], params: Sequence[nn.Parameter]) -> None:
        infos, shared, fqns, found = [], [], [], []
        first: dict[nn.Parameter, ParamInfo] = {}
        for path, module in self._fully_sharded_module.named_modules(remove_duplicate=False):
            for name, param in module.named_parameters(recurse=False):
                if param not in wanted:
                    continue
                if param in first:
                    shared.append(SharedParamInfo(name, module, path, *first[param]))
                    continue
                first[param] = ParamInfo(name, module, path)
                infos.append(first[param])
                found.append(param)
                fqns.append(_fqn(path, name))
        _check_alike(found, self._use_orig_params)
        flat = flambeau.cat([p.detach().reshape(-1) for p in found])
        self._full_size = flat.numel()
        self._shapes, self._numels = tuple(p.shape for p in found), tuple(p.numel() for p in found)
        self._requires = tuple(p.requires_grad for p in found)
        whole = flambeau.nn.functional.pad(flat, [0, -flat.numel() % self._parts()])
        self._part = whole.numel() // self._parts()
        begin = self._part * (self.rank if self.uses_sharded_strategy else 0)
        self._begin = begin
        local = whole[begin:begin + self._part].clone()
        self.flat_param = FlatParameter(local, requires_grad=any(self._requires))
        _set_fsdp_flattened(self.flat_param)
        flat_param = self.flat_param
        flat_param._fqns, flat_param._shapes = tuple(fqns), self._shapes
        flat_param._numels, flat_param._param_infos = self._numels, tuple(infos)
        flat_param._shared_param_infos = tuple(shared)
        flat_param._local_shard = local
        flat_param._unpadded_unsharded_size = flambeau.Size([self._full_size])
        flat_param._sharded_size = flat_param.size()
        self._names = fqns
        flat_param._params = None
        every: tuple[Any, ...] = (*infos, *shared)
        for info in every:
            delattr(info.module, info.param_name)
        if self._use_orig_params:
            flat_param._params = found
            for param in found:
                _set_fsdp_flattened(param)
            flat_param.register_post_accumulate_grad_hook(lambda _: self._use_sharded_grad_views())
        self.use_sharded_views()

    def _parts(self) -> int:
        return self.world_size if self.uses_sharded_strategy else 1

    @property
    def uses_sharded_strategy(self) -> bool:
        """Has each process a part only?"""
        return self._sharding_strategy is not HandleShardingStrategy.NO_SHARD

    @property
    def sharded_grad(self) -> Tensor | None:
        """The gradient of this process's part."""
        return self.flat_param.grad

    def _places(self) -> list[tuple[int, int]]:
        """For each parameter, where what this process has of it begins and ends in the part."""
        found, at = [], 0
        for count in self._numels:
            begin = min(max(at - self._begin, 0), self._part)
            end = min(max(at + count - self._begin, 0), self._part)
            found.append((begin, end))
            at += count
        return found

    def shard_metadata(self) -> FlatParamShardMetadata:
        """The parameters of which this process has a part, and which part."""
        rows, at = [], 0
        for name, shape, count, (begin, end) in zip(self._names, self._shapes, self._numels,
                                                    self._places()):
            if end > begin:
                start = max(self._begin - at, 0)
                stride = flambeau.empty(shape, device="meta").stride()
                rows.append((name, shape, stride, True, count, (start, start + end - begin - 1)))
            at += count
        return FlatParamShardMetadata(*(tuple(column) for column in zip(*rows))) if rows \
            else FlatParamShardMetadata((), (), (), (), (), ())

    # ---- gathering ------------------------------------------------------------------------------

    def _memory(self, dtype: flambeau.dtype) -> _Memory:
        if dtype not in self._memories:
            self._memories[dtype] = _Memory(self._part * self._parts(), dtype)
        return self._memories[dtype]

    def _gathered(self, local: Tensor, dtype: flambeau.dtype | None = None) -> Tensor:
        """The whole, of all processes' parts."""
        dtype = self._fwd_bwd_param_dtype if dtype is None else dtype
        own = local.detach().to(dtype)
        if not self.uses_sharded_strategy:
            return own.view_as(own)[:self._full_size]
        memory = self._memory(dtype).tensor.detach()
        if self.world_size > 1:
            dist.all_gather_into_tensor(memory.data, own.contiguous(), group=self.process_group)
        else:
            memory.data.copy_(own)
        return self._memory(dtype).tensor.data[:self._full_size]

    def unshard(self) -> None:
        """Let the module have its whole parameters, as parts of a graph."""
        self._forget_gradients()
        self._views = self._split(_Gather.apply(self.flat_param, self))
        self.use_unsharded_views()

    def _split(self, flat: Tensor) -> list[Tensor]:
        return [part.view(shape) for part, shape in zip(flat.split(list(self._numels)),
                                                        self._shapes)]

    def refill(self) -> None:
        """Gather the values again that the graph has places for."""
        if self.uses_sharded_strategy:
            self._gathered(self.flat_param)

    def free(self) -> None:
        """Give the memory of the whole back."""
        if self.uses_sharded_strategy:
            for memory in self._memories.values():
                memory.free()

    def needs_unshard(self) -> bool:
        """Is there anything to gather?"""
        return self.uses_sharded_strategy

    # ---- what the module has --------------------------------------------------------------------

    def use_unsharded_views(self, as_params: bool = False) -> None:
        """Put whole tensors in the place of the parameters."""
        tensors = self._views
        if as_params:
            tensors = [nn.Parameter(view.detach(), needs) for view, needs in
                       zip(self._views, self._requires)]
        self._place(tensors, as_params or self._use_orig_params)

    def use_sharded_views(self) -> None:
        """Put what this process has in the place of the parameters."""
        if not self._use_orig_params:
            return
        local = self.flat_param.data
        for param, (begin, end), shape in zip(self.flat_param._params, self._places(),
                                              self._shapes):
            piece = local[begin:end]
            param.data = piece if self.uses_sharded_strategy else piece.view(shape)
        self._place(self.flat_param._params, True)

    def _place(self, tensors: Sequence[Tensor], registered: bool) -> None:
        by_place = {}
        for info, tensor in zip(self.flat_param._param_infos, tensors):
            by_place[info.module, info.param_name] = tensor
            _put(info.module, info.param_name, tensor, registered)
        for other in self.flat_param._shared_param_infos:
            _put(other.module, other.param_name,
                 by_place[other.prim_module, other.prim_param_name], registered)

    def remove_views(self) -> None:
        """Take away what has been put in the place of the parameters."""
        every: tuple[Any, ...] = (*self.flat_param._param_infos,
                                  *self.flat_param._shared_param_infos)
        for info in every:
            info.module._parameters.pop(info.param_name, None)
            info.module.__dict__.pop(info.param_name, None)

    # ---- gradients ------------------------------------------------------------------------------

    def _forget_gradients(self) -> None:
        """Where the parameters have lost their gradients, so has the flat one."""
        if self._use_orig_params and self.flat_param.grad is not None and all(
                p.grad is None for p in self.flat_param._params):
            self.flat_param.grad = None

    def _use_sharded_grad_views(self) -> None:
        """Let the parameters' gradients be parts of the flat one's."""
        if not self._use_orig_params or self.flat_param.grad is None:
            return
        flat = self.flat_param.grad
        for param, (begin, end), needs, shape in zip(self.flat_param._params, self._places(),
                                                     self._requires, self._shapes):
            piece = flat[begin:end]
            if not needs or (end == begin and self.uses_sharded_strategy):
                param.grad = None
            else:
                param.grad = piece if self.uses_sharded_strategy else piece.view(shape)

    def reduce_gradient(self, gradient: Tensor) -> Tensor:
        """This process's part of the mean of all processes' gradients of the whole."""
        self._forget_gradients()                # they may have been cleared since the forward pass
        state = self._state
        flat = gradient.detach().to(self._reduce_dtype)
        if not self.uses_sharded_strategy:
            reduced = flat.clone()
            if state._comm_hook is not None:
                state._comm_hook(state._comm_hook_state, reduced)
            elif self.world_size > 1:
                dist.all_reduce(reduced.div_(self.world_size), group=self.process_group)
            return reduced.to(self._orig_param_dtype)
        padded = flambeau.nn.functional.pad(flat, [0, self._part * self._parts() - flat.numel()])
        reduced = padded.new_empty(self._part)
        replicas = state._inter_node_pg
        total = self.world_size * (replicas.size() if replicas is not None else 1)
        if state._comm_hook is not None:
            state._comm_hook(state._comm_hook_state, padded, reduced)
        elif self.world_size > 1:
            dist.reduce_scatter_tensor(reduced, padded.div_(total), group=self.process_group)
        else:
            reduced = padded.div_(total)
        if replicas is not None and replicas.size() > 1:
            dist.all_reduce(reduced, group=replicas)
        return reduced.to(self._orig_param_dtype)

    # ---- whole parameters for others ------------------------------------------------------------

    def full_tensors(self, flat: Tensor | None = None) -> list[Tensor]:
        """Whole parameters, in their own type; or of another flat tensor, such as gradients."""
        local = self.flat_param if flat is None else flat
        if not self.uses_sharded_strategy:
            whole = local.detach()[:self._full_size].clone()
        else:
            own = local.detach().contiguous()
            whole = own.new_empty(self._part * self._parts())
            dist.all_gather_into_tensor(whole, own, group=self.process_group)
            whole = whole[:self._full_size]
        return self._split(whole)

    def write_back(self, tensors: Sequence[Tensor]) -> None:
        """Let the part be that of whole parameters."""
        flat = flambeau.cat([t.detach().reshape(-1).to(self._orig_param_dtype) for t in tensors])
        self.flat_param.data.copy_(self.part_of(flat))

    def part_of(self, flat: Tensor) -> Tensor:
        """This process's part of a whole flat tensor."""
        padded = flambeau.nn.functional.pad(flat, [0, self._part * self._parts() - flat.numel()])
        return padded[self._begin:self._begin + self._part]


def _fqn(path: str, name: str) -> str:
    from flambeau.distributed.fsdp._common_utils import clean_tensor_name
    return clean_tensor_name(f"{path}.{name}" if path else name)


def _check_alike(params: list[nn.Parameter], use_orig_params: bool) -> None:
    if any(hasattr(p, "placements") for p in params):
        raise NotImplementedError("FullyShardedDataParallel of modules whose parameters are "
                                  "DTensors: fully_shard takes them")
    dtypes = {p.dtype for p in params}
    if len(dtypes) > 1:
        first, other = params[0].dtype, next(p.dtype for p in params if p.dtype is not
                                             params[0].dtype)
        raise ValueError(f"Must flatten tensors with uniform dtype but got {first} and {other}")
    if not params[0].is_floating_point() and not params[0].is_complex():
        raise ValueError("Cannot flatten integer dtype tensors")
    if not use_orig_params and len({p.requires_grad for p in params}) > 1:
        raise ValueError("Must flatten tensors with uniform `requires_grad` when "
                         "`use_orig_params=False`")


def _put(module: nn.Module, name: str, tensor: Tensor, registered: bool) -> None:
    """Let an attribute of a module be a tensor: a registered parameter, or a plain one."""
    if registered:
        module.__dict__.pop(name, None)
        module._parameters[name] = tensor
    else:
        module._parameters.pop(name, None)
        module.__dict__[name] = tensor
