"""`FSDPParamGroup`: the parameters of one `fully_shard`, which are gathered and reduced together.

A forward pass gathers them, and puts them into the graph by one node. When all their gradients
have arrived there, the node reduces them and gives each parameter that of its piece. Meanwhile the
memory of the whole parameters goes back to the system: the graph keeps its places in it, and finds
the values there again when the gradient of the module's output arrives.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor, nn
from flambeau.autograd.function import Function
from flambeau.core.autograd.engine import current_pass
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.fsdp._fully_shard._fsdp_api import (
    AllGather,
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
    ReduceScatter,
)
from flambeau.distributed.fsdp._fully_shard._fsdp_collectives import (
    AllGatherResult,
    DefaultAllGather,
    DefaultReduceScatter,
    ProcessGroupAllocAllGather,
    ProcessGroupAllocReduceScatter,
    _div_if_needed,
    _get_gradient_divide_factors,
    foreach_all_gather,
    foreach_all_gather_copy_out,
    foreach_reduce,
)
from flambeau.distributed.fsdp._fully_shard._fsdp_common import (
    FSDPMeshInfo,
    HSDPMeshInfo,
    TrainingState,
)
from flambeau.distributed.fsdp._fully_shard._fsdp_param import (
    FSDPParam,
    ParamModuleInfo,
    ShardedState,
)


class FSDPCommContext:
    """What modules know of each other: in which order their forward passes have ended."""

    def __init__(self) -> None:
        self.post_forward_order: list[FSDPParamGroup] = []


class _Pass:
    """One forward pass of a group, until its gradients have arrived."""

    def __init__(self, depth: int):
        self.depth = depth                      # of the backward pass that goes through it
        self.whole: list[Tensor] = []


class _Unshard(Function):
    """Whole parameters of pieces; backward, the gradients of the pieces."""

    @staticmethod
    def forward(ctx: Any, group: FSDPParamGroup, of: _Pass, *sharded: Tensor) -> Any:
        ctx.group, ctx.of = group, of
        ctx.set_materialize_grads(False)
        whole = [param.unsharded_local() for param in group.fsdp_params]
        ctx.mark_non_differentiable(*[w for w, s in zip(whole, sharded) if not s.requires_grad])
        return tuple(whole)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *ctx.group.post_backward(ctx.of, grads))


def _depth() -> int:
    """How many backward passes run inside others; -1 outside of all."""
    running = current_pass.get()
    return -1 if running is None else running.depth


class FSDPParamGroup:
    """Parameters that are gathered and reduced together."""

    def __init__(self, params: list[nn.Parameter], modules: tuple[nn.Module, ...],
                 mesh_info: FSDPMeshInfo, post_forward_mesh_info: FSDPMeshInfo | None,
                 device: flambeau.device, shard_placement_fn: Callable[..., Any] | None,
                 mp_policy: MixedPrecisionPolicy, offload_policy: OffloadPolicy):
        self.modules = modules
        infos = _get_param_module_infos(params, modules)
        self.fsdp_params = [
            FSDPParam(param, info, mesh_info, post_forward_mesh_info, device, shard_placement_fn,
                      mp_policy, offload_policy) for param, info in zip(params, infos)]
        self.mesh_info, self.post_forward_mesh_info = mesh_info, post_forward_mesh_info
        self.device, self.mp_policy, self.offload_policy = device, mp_policy, offload_policy
        self._training_state = TrainingState.IDLE
        self._sharded_state = ShardedState.SHARDED
        self._module_fqn: str | None = None
        self.comm_ctx = FSDPCommContext()
        self._pending: list[AllGatherResult] | None = None
        self._pending_params: list[list[FSDPParam]] = []
        self._filled = False                    # are the values there?
        self._in_graph = False                  # are the modules' parameters part of a graph?
        self._passes: set[_Pass] = set()        # whose gradients are on their way
        self._partial_reduce: Tensor | None = None
        self._checked = False
        # What users set.
        self.reduce_grads = self.all_reduce_grads = True
        self.reshard_after_backward = self.unshard_in_backward = True
        self.unshard_async_op = self.reduce_scatter_unused_params = False
        self.gradient_divide_factor: float | None = None
        self.force_sum_reduction_for_comms = False
        self.reduce_scatter_max_input_buffers = 1
        self._all_reduce_hook: Callable[[Tensor], None] | None = None
        self._all_gather_comm: AllGather = DefaultAllGather()
        self._reduce_scatter_comm: ReduceScatter = DefaultReduceScatter()
        self._register_state_dict_hooks()

    # ---- before the first pass ------------------------------------------------------------------

    def lazy_init(self) -> None:
        """Check that the parameters can be used."""
        if self._checked:
            return
        on_meta = [p._param_fqn or p._module_info.param_name for p in self.fsdp_params
                   if p.sharded_param.device.type == "meta"]
        if on_meta:
            raise RuntimeError(
                "FSDP parameters should be materialized from meta device before training, but the "
                f"following were still on meta device: {on_meta}\nFor example, call "
                "module.to_empty(device) to materialize to device and call "
                "module.reset_parameters() on each module to initialize values.")
        for param in self.fsdp_params:
            param.adopt()
        trained = {p.orig_dtype for p in self.fsdp_params if p.requires_grad}
        if len(trained) > 1:
            raise AssertionError(f"FSDP expects uniform original parameter dtype but got {trained}")
        self._checked = True

    @property
    def _is_hsdp(self) -> bool:
        return isinstance(self.mesh_info, HSDPMeshInfo)

    @property
    def _shard_group(self) -> Any:
        """Those among which the parameters are cut now; None if they are not."""
        if self._sharded_state is ShardedState.SHARDED_POST_FORWARD:
            return self.post_forward_mesh_info.shard_process_group
        return getattr(self.mesh_info, "shard_process_group", None)

    @property
    def _replicate_group(self) -> Any:
        return getattr(self.mesh_info, "replicate_process_group", None)

    # ---- gathering ------------------------------------------------------------------------------

    def unshard(self, async_op: bool = False) -> None:
        """Begin to gather the parameters."""
        if self._pending is not None or self._filled:
            return
        if self._sharded_state is ShardedState.SHARDED:
            for param in self.fsdp_params:
                param.adopt()
        group = self._shard_group
        by_type: dict[Any, list[FSDPParam]] = {}
        for param in self.fsdp_params:
            by_type.setdefault(param.param_dtype, []).append(param)
        self._pending_params = list(by_type.values())
        with flambeau.no_grad():
            if group is None or group.size() == 1:
                self._pending = [AllGatherResult(
                    flambeau.cat([p.all_gather_input() for p in params])[None], None,
                    [p.all_gather_input().numel() for p in params])
                    for params in self._pending_params]
            else:
                self._pending = [foreach_all_gather(params, group, async_op,
                                                    self._all_gather_comm)
                                 for params in self._pending_params]

    def wait_for_unshard(self) -> None:
        """Have the values of the whole parameters."""
        if self._pending is None:
            return
        with flambeau.no_grad():
            for result, params in zip(self._pending, self._pending_params):
                foreach_all_gather_copy_out(result, params)
        self._pending, self._filled = None, True

    def _to_unsharded(self, whole: Sequence[Tensor]) -> None:
        for param, tensor in zip(self.fsdp_params, whole):
            param.to_unsharded(tensor)
        self._sharded_state = ShardedState.UNSHARDED

    def use_parameters(self) -> None:
        """Let the modules have whole parameters that are part of no graph."""
        if self._sharded_state is ShardedState.UNSHARDED and not self._in_graph:
            return
        with flambeau.no_grad():
            whole = [p.unsharded(p.unsharded_local()) for p in self.fsdp_params]
        self._to_unsharded([nn.Parameter(w, p.requires_grad)
                            for w, p in zip(whole, self.fsdp_params)])
        self._in_graph = False

    def _use_graph(self) -> _Pass:
        """Let the modules have whole parameters that are part of the graph."""
        this = _Pass(_depth())
        sharded = [p.sharded_param for p in self.fsdp_params]
        local = _Unshard.apply(self, this, *sharded)
        this.whole = [p.unsharded(t) for p, t in zip(self.fsdp_params, local)]
        for whole in this.whole:
            whole._is_param = True              # type: ignore[attr-defined]
        self._to_unsharded(this.whole)
        self._in_graph = True
        return this

    def reshard(self) -> None:
        """Let the modules have pieces; give the memory back."""
        self.wait_for_unshard()
        for param in self.fsdp_params:
            param.to_sharded()
            param.free()
        self._filled, self._sharded_state = False, ShardedState.SHARDED

    def _reshard_after_forward(self) -> None:
        info = self.post_forward_mesh_info
        if info is None:
            return
        if info is self.mesh_info or self._sharded_state is not ShardedState.UNSHARDED:
            self.reshard()
            return
        for param in self.fsdp_params:
            param.to_sharded_post_forward()
            param.free()
        self._filled, self._sharded_state = False, ShardedState.SHARDED_POST_FORWARD

    # ---- passes ---------------------------------------------------------------------------------

    def pre_forward(self) -> _Pass | None:
        """Gather the parameters for a forward pass."""
        self._training_state = TrainingState.FORWARD
        self.unshard(self.unshard_async_op)
        self.wait_for_unshard()
        if flambeau.is_grad_enabled() and any(p.requires_grad for p in self.fsdp_params):
            return self._use_graph()
        self.use_parameters()
        return None

    def post_forward(self) -> None:
        """Give the memory back, if that is wanted."""
        self._reshard_after_forward()
        if flambeau.is_grad_enabled():
            self.comm_ctx.post_forward_order.append(self)
        self._training_state = TrainingState.IDLE

    def pre_backward(self, of: _Pass | None) -> None:
        """Have the values that the graph needs."""
        self._training_state = TrainingState.PRE_BACKWARD
        if self.unshard_in_backward:
            self.unshard(self.unshard_async_op)
            self.wait_for_unshard()
        if of is not None:
            of.depth = _depth()
            self._passes.add(of)
            self._to_unsharded(of.whole)
            self._in_graph = True
        else:
            self.use_parameters()

    def prefetch_backward(self) -> None:
        """Begin to gather the parameters of the group that comes next in a backward pass."""
        order = self.comm_ctx.post_forward_order
        while order and order[-1] is not self:
            order.pop()
        if order:
            order.pop()
        if order and order[-1].unshard_in_backward:
            order[-1].unshard(async_op=True)

    @flambeau.no_grad()
    def post_backward(self, of: _Pass, grads: Sequence[Tensor | None]) -> list[Any]:
        """The gradients of the pieces, of those of the whole, which have arrived."""
        self._training_state = TrainingState.POST_BACKWARD
        result = self._reduced(grads)
        if of.depth == _depth():                # and not from a part that is computed again
            self._passes.discard(of)
            if not self._passes and self.reshard_after_backward:
                self.reshard()
        return result

    def finalize_backward(self) -> None:
        """At the end of a backward pass nothing is kept."""
        self._passes.clear()
        if self._training_state is not TrainingState.IDLE or self._pending is not None \
                or self._sharded_state is ShardedState.UNSHARDED:
            self._training_state = TrainingState.IDLE
            if self.reshard_after_backward:
                self.reshard()

    # ---- gradients ------------------------------------------------------------------------------

    def _reduced(self, grads: Sequence[Tensor | None]) -> list[Any]:
        trained = [p.requires_grad for p in self.fsdp_params]
        if not self.reduce_grads:
            for param, grad, needs in zip(self.fsdp_params, grads, trained):
                if needs:
                    param.keep(grad, self._reduce_dtype(param, grad))
            return [None] * len(self.fsdp_params)
        total = [param.accumulate(grad) if needs else None
                 for param, grad, needs in zip(self.fsdp_params, grads, trained)]
        if self.reduce_scatter_unused_params:
            total = [param.unsharded_local().new_zeros(param._shape) if needs and grad is None
                     else grad for param, grad, needs in zip(self.fsdp_params, total, trained)]
        at = [i for i, grad in enumerate(total) if grad is not None]
        result: list[Any] = [None] * len(self.fsdp_params)
        if at:
            found = self._reduce([self.fsdp_params[i] for i in at], [total[i] for i in at])
            for i, grad in zip(at, found):
                result[i] = grad
        return result

    def _reduce_dtype(self, param: FSDPParam, grad: Tensor | None) -> flambeau.dtype:
        return self.mp_policy.reduce_dtype or (param.param_dtype if grad is None else grad.dtype)

    def _reduce(self, params: list[FSDPParam], grads: list[Any]) -> list[Any]:
        """The mean over all processes, of which each gets its pieces."""
        shard = getattr(self.mesh_info, "shard_process_group", None)
        replicate = self._replicate_group
        count = (1 if shard is None else shard.size()) * (
            1 if replicate is None else replicate.size())
        dtype = self._reduce_dtype(params[0], grads[0])
        divisors = _get_gradient_divide_factors(count, dtype, self.gradient_divide_factor)
        flat = foreach_reduce(params, grads, shard, self._reduce_scatter_comm, dtype, divisors)
        if replicate is not None:
            if self._partial_reduce is not None:
                flat = flat + self._partial_reduce
                self._partial_reduce = None
            if not self.all_reduce_grads:
                self._partial_reduce = flat
                return [None] * len(params)
            if replicate.size() > 1:
                dist.all_reduce(flat, group=replicate)
        _div_if_needed(flat, divisors.after)
        if self._all_reduce_hook is not None:
            self._all_reduce_hook(flat)
        parts = flat.split([p.sharded_numel(1 if shard is None else shard.size())
                            for p in params])
        return [param.take_reduced(part) for param, part in zip(params, parts)]

    # ---- states ---------------------------------------------------------------------------------

    def _register_state_dict_hooks(self) -> None:
        """States are those of pieces."""
        def sharded(*_: Any, **__: Any) -> None:
            if self._sharded_state is not ShardedState.SHARDED:
                self.reshard()
        for module in {id(p._module_info.module): p._module_info.module
                       for p in self.fsdp_params}.values():
            module.register_state_dict_pre_hook(sharded)
            module._register_load_state_dict_pre_hook(sharded)

    @contextlib.contextmanager
    def use_training_state(self, training_state: TrainingState) -> Iterator[None]:
        """Inside, the group is in this state."""
        before, self._training_state = self._training_state, training_state
        try:
            yield
        finally:
            self._training_state = before

    def set_allocate_memory_from_process_group(self, enable: bool) -> None:
        """Use memory that the group of processes gives for what is sent."""
        group = getattr(self.mesh_info, "shard_process_group", None)
        if not enable or group is None:
            self._all_gather_comm, self._reduce_scatter_comm = (DefaultAllGather(),
                                                                DefaultReduceScatter())
        else:
            self._all_gather_comm = ProcessGroupAllocAllGather(group)
            self._reduce_scatter_comm = ProcessGroupAllocReduceScatter(group)

    def _validate_cpu_offload_params(self) -> None:
        """Parameters wait in main memory: here they always do."""
        assert isinstance(self.offload_policy, CPUOffloadPolicy)

    def __repr__(self) -> str:
        return f"FSDPParamGroup(fqn={self._module_fqn})"


class _Place(NamedTuple):
    module: nn.Module
    name: str


def _get_param_module_infos(params: list[nn.Parameter], modules: tuple[nn.Module, ...]
                            ) -> list[ParamModuleInfo]:
    """For each parameter, which modules have it."""
    wanted = set(params)
    found: dict[nn.Parameter, list[_Place]] = {}
    for module in modules:
        for inner in module.modules():
            for name, param in inner._parameters.items():
                if param is not None and param in wanted:
                    place = _Place(inner, name)
                    if place not in found.setdefault(param, []):
                        found[param].append(place)
    infos = []
    for param in params:
        (first, *others) = found[param]
        infos.append(ParamModuleInfo(first.module, first.name, [p.module for p in others],
                                     [p.name for p in others]))
    return infos
