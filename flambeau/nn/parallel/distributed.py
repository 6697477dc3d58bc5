"""`DistributedDataParallel`: copies of a module that share their gradients."""
from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._c10d.collectives import broadcast_coalesced
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook
from flambeau.distributed.utils import _sync_module_states, _verify_param_shape_across_processes
from flambeau.futures import Future
from flambeau.nn.parallel._ddp_logger import Logger as Logger
from flambeau.nn.parallel._ddp_logger import (
    _dump_DDP_relevant_env_vars as _dump_DDP_relevant_env_vars,
)
from flambeau.nn.parallel._delayed import DelayedSharing
from flambeau.nn.parallel._reducer import GradBucket as GradBucket
from flambeau.nn.parallel._reducer import Reducer, assign_buckets
from flambeau.nn.parameter import is_lazy
from flambeau.utils import _pytree

__all__ = ["DistributedDataParallel"]

_DEFAULT_BUCKET_CAP_MB = 25
_FIRST_BUCKET_BYTES = 1 << 20
_BROADCAST_BYTES = 250 << 20


def _mean(group: Any, bucket: GradBucket) -> Future:
    """The mean of the gradients."""
    flat = bucket.buffer().div_(group.size())
    return dist.all_reduce(flat, group=group, async_op=True).get_future()


def _half_mean(group: Any, bucket: GradBucket) -> Future:
    """The mean of the gradients, which travel in half precision."""
    flat = bucket.buffer()
    half = flat.half().div_(group.size())
    work = dist.all_reduce(half, group=group, async_op=True)
    return work.get_future().then(lambda done: flat.copy_(done.value()[0]))


class _DDPJoinHook(JoinHook):
    """A process that has finished takes part in the sharing of the others with zeros, and gets
    the model of one that was at work last."""

    def __init__(self, ddp: Any, divide_by_initial_world_size: bool):
        assert isinstance(ddp, DistributedDataParallel), (
            "DDP join hook requires passing in a DistributedDataParallel instance as the state")
        ddp.logger._set_uneven_input_join()
        ddp._divide_by_initial_world_size = divide_by_initial_world_size
        self.ddp = ddp

    def main_hook(self) -> None:
        """A step of the others."""
        ddp = self.ddp
        if not ddp._any_process_shares(is_joined_rank=True):
            return
        if ddp.will_sync_module_buffers():
            ddp._sync_buffers(is_joined_rank=True)
        ddp.reducer.joining = None
        if not ddp._divide_by_initial_world_size:       # zeros are the same, however divided
            ddp.reducer.joining = lambda: 1
        ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All have finished."""
        self.ddp.reducer.joining = None
        self.ddp._sync_final_model(is_last_joiner)


class DistributedDataParallel(nn.Module, Joinable):
    """A module each of whose copies, one a process, gets the mean of all gradients.

    All copies begin with the parameters and buffers of the first process. Gradients are shared in
    buckets while the backward pass runs; with `find_unused_parameters`, a pass may leave some
    parameters out; with `static_graph` every pass leaves out the same.

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = DistributedDataParallel(nn.Linear(2, 1))
    >>> model(flambeau.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    def __init__(self, module: nn.Module, device_ids: Any = None, output_device: Any = None,
                 dim: int = 0, broadcast_buffers: bool | None = None, init_sync: bool = True,
                 process_group: Any = None, bucket_cap_mb: float | None = None,
                 find_unused_parameters: bool = False, check_reduction: bool = False,
                 gradient_as_bucket_view: bool = False, static_graph: bool = False,
                 delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None,
                 mixed_precision: Any = None, device_mesh: Any = None,
                 skip_all_reduce_unused_params: bool = False,
                 bucket_cap_mb_list: list[int] | None = None, batched_grad_copy: bool = False,
                 forward_sync_buffers: bool | None = None):
        super().__init__()
        Joinable.__init__(self)
        self.logger: Logger | None = None
        if mixed_precision is not None:
            raise NotImplementedError("DistributedDataParallel: mixed_precision (PyTorch has it on "
                                      "devices with streams only)")
        delayed = dict(delay_all_reduce_named_params or ())
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError("delay_all_reduce_named_params and param_to_hook_all_reduce need to "
                             "be set at the same time.")
        self.process_group = self._find_group(process_group, device_mesh)
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore |= delayed.keys()
        self._delay_all_reduce_params: list[Any] = list(delayed.values())
        self._module_parameters = [p for name, p in module.named_parameters()
                                   if name not in self.parameters_to_ignore]
        self._check_module(module, device_ids, output_device)
        self.module = module
        self.device = (self._module_parameters or self._delay_all_reduce_params)[0].device
        self.device_type = self.device.type
        self.device_ids = self.output_device = None
        self.dim, self.is_multi_device_module = dim, False
        if forward_sync_buffers is None:
            forward_sync_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.forward_sync_buffers = forward_sync_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, False
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.mixed_precision = mixed_precision
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._comm_hooks: list[tuple[Callable[..., Any], object]] = []
        self._divide_by_initial_world_size = True
        self.modules_buffers = [buffer for name, buffer in module.named_buffers()
                                if name not in self.parameters_to_ignore]
        self.broadcast_bucket_size = _BROADCAST_BYTES
        if init_sync:
            _verify_param_shape_across_processes(self.process_group, self._module_parameters)
            _sync_module_states(module, self.process_group, self.broadcast_bucket_size, 0,
                                self.parameters_to_ignore)
        self._build_reducer(bucket_cap_mb, static_graph)
        if delayed:
            self._delayed = DelayedSharing(
                self._delay_all_reduce_params, param_to_hook_all_reduce, self.process_group,
                lambda: self.require_backward_grad_sync, init_sync, self.broadcast_bucket_size)
        if static_graph:
            self._set_static_graph()
        if any(getattr(p, "_in_backward_optimizers", None) for p in module.parameters()):
            self._setup_in_backward_optimizers()

    @staticmethod
    def _find_group(process_group: Any, device_mesh: Any) -> Any:
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is None:
            return dist._get_default_group() if process_group is None else process_group
        if device_mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
        return device_mesh.get_group(mesh_dim=0)

    def _check_module(self, module: nn.Module, device_ids: Any, output_device: Any) -> None:
        if not any(p.requires_grad for p in (*self._module_parameters,
                                             *self._delay_all_reduce_params)):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have "
                               "any parameter that requires a gradient.")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if any(is_lazy(p) for p in self._module_parameters):
            raise RuntimeError("Modules with uninitialized parameters can't be used with "
                               "`DistributedDataParallel`. Run a dummy forward pass to correctly "
                               "initialize the modules")
        if device_ids:
            devices = {p.device for p in self._module_parameters}
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                f"{device_ids}, output_device {output_device}, and module parameters {devices}.")
        if any(isinstance(m, nn.SyncBatchNorm) for m in module.modules()):
            raise ValueError("SyncBatchNorm layers only work with GPU modules")

    def _build_reducer(self, bucket_cap_mb: float | None, static_graph: bool = False) -> None:
        cap = int((_DEFAULT_BUCKET_CAP_MB if bucket_cap_mb is None else bucket_cap_mb) * (1 << 20))
        first = _FIRST_BUCKET_BYTES if bucket_cap_mb is None else cap
        self.bucket_bytes_cap = cap
        parameters = [p for p in self._module_parameters if p.requires_grad]
        sparse_ids = {id(m.weight) for m in self.module.modules()
                      if isinstance(m, (nn.Embedding, nn.EmbeddingBag)) and m.sparse}
        sparse = [id(p) in sparse_ids for p in parameters]
        limits = [min(first, cap), cap]
        names = {id(p): name for name, p in self.module.named_parameters()}
        self.reducer = Reducer(
            parameters, assign_buckets(parameters, sparse, *limits), limits, self.process_group,
            sparse, cap, self.find_unused_parameters, self.gradient_as_bucket_view,
            {i: names[id(p)] for i, p in enumerate(parameters)})
        self.logger = Logger(self.reducer)
        self.logger.set_construction_data_and_log(
            type(self.module).__name__, [], -1, self.forward_sync_buffers, False, static_graph)

    @property
    def broadcast_buffers(self) -> bool:
        """The older name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    # ---- passes ---------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        inputs, kwargs = self._pre_forward(*inputs, **kwargs)
        return self._post_forward(self.module(*inputs, **kwargs))

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> tuple[Any, Any]:
        shares = flambeau.is_grad_enabled() and self.require_backward_grad_sync
        if shares:
            self.logger.set_runtime_stats_and_log()
            self.reducer.prepare_for_forward()
        if self._join_config.enable:
            self._join_forward()
        if (shares or self._join_config.enable) and self.will_sync_module_buffers():
            self._sync_buffers(is_joined_rank=False)
        return inputs, kwargs

    def _join_forward(self) -> None:
        """Tell processes that have finished of a step."""
        work = Join.notify_join_context(self)
        if work is not None and not self._divide_by_initial_world_size:
            self.reducer.joining = functools.cache(lambda: work.result()[0].item())
        self._any_process_shares(is_joined_rank=False)

    def _post_forward(self, output: Any) -> Any:
        if flambeau.is_grad_enabled() and self.require_backward_grad_sync:
            self.require_forward_param_sync = True
            self.reducer.prepare_for_backward(
                [t for t in _pytree.tree_leaves(output) if isinstance(t, Tensor)
                 and t.requires_grad])
        else:
            self.require_forward_param_sync = False
        return output

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are not shared: they add up, and the first pass after shares them."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = self.reducer.enabled = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = self.reducer.enabled = before

    def will_sync_module_buffers(self) -> bool:
        """Do buffers become those of the first process before the next pass?"""
        return (self.require_forward_param_sync and self.forward_sync_buffers
                and len(self.modules_buffers) > 0)

    def _sync_buffers(self, is_joined_rank: bool) -> None:
        """Let buffers be those of the first process; where some may have finished, those of the
        last one that has not."""
        authority = 0
        if self._join_config.enable or is_joined_rank:
            rank = flambeau.tensor(-1 if is_joined_rank else dist.get_rank(self.process_group))
            dist.all_reduce(rank, dist.ReduceOp.MAX, group=self.process_group)
            authority = int(rank.item())
        if self.process_group.size() > 1:
            broadcast_coalesced(self.process_group, self.modules_buffers,
                                self.broadcast_bucket_size, authority)

    def _set_static_graph(self) -> None:
        """Every pass leaves out the same parameters from now on."""
        try:
            self.reducer._set_static_graph()
        except RuntimeError as error:
            self.logger.set_error_and_log(str(error))
            raise
        self.static_graph = True
        self.logger._set_static_graph()

    # ---- hooks ----------------------------------------------------------------------------------

    def register_comm_hook(self, state: object, hook: Callable[[object, GradBucket], Any]) -> None:
        """Let `hook(state, bucket)` share the gradients: it gives a future of the flat tensor."""
        self._check_comm_hook(hook)
        self._set_hook(state, hook)
        self._comm_hooks.append((hook, state))
        self.logger._set_comm_hook_name(hook.__qualname__)

    def _set_hook(self, state: object, hook: Callable[..., Any]) -> None:
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be "
                               "called once.")
        self.reducer.hook = state, hook

    def _check_comm_hook(self, hook: Callable[..., Any]) -> None:
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        signature = inspect.signature(hook)
        bucket = signature.parameters.get("bucket")
        if bucket is not None and bucket.annotation not in (
                inspect._empty, GradBucket, Any, "dist.GradBucket", "GradBucket", "Any"):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        returned = signature.return_annotation
        if not isinstance(returned, str) and returned not in (
                inspect._empty, Future, Future[Tensor], Any):
            raise ValueError("Communication hook: return annotation should be "
                             "torch.futures.Future[torch.Tensor].")

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        """Share gradients in a way that has a name."""
        hooks = {1: _mean, 2: _half_mean}
        self._set_hook(self.process_group, hooks[int(comm_hook_type)])
        self.logger._set_comm_hook_name(str(comm_hook_type))

    def _register_fused_optim(self, optim: type, *args: Any, optim_params: Any = None,
                              **kwargs: Any) -> None:
        """Let an optimizer step as soon as a bucket of gradients has been shared."""
        from flambeau.distributed.algorithms._optimizer_overlap import _as_overlapped_optim
        _as_overlapped_optim(optim, optim_params, *args, **kwargs).register_ddp(self)

    def _setup_in_backward_optimizers(self) -> None:
        """Optimizers that step in the backward pass do so once gradients have been shared."""
        from flambeau.distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks import (
            _apply_optim_in_backward_hook,
        )
        for parameter in self.module.parameters():
            for handle in getattr(parameter, "_optimizer_hook_handles", ()):
                handle.remove()
        hook = _apply_optim_in_backward_hook(self.gradient_as_bucket_view)
        self.register_comm_hook((weakref.ref(self), None), hook)

    @classmethod
    def _get_data_parallel_params(cls, module: nn.Module, named_params: bool = False
                                  ) -> Generator[Any, None, None]:
        """The parameters of a wrapped module whose gradients are shared."""
        inner = module.module if isinstance(module, cls) else module
        ignored = getattr(inner, "_ddp_params_and_buffers_to_ignore", ())
        for name, parameter in inner.named_parameters():
            if name not in ignored:
                yield (name, parameter) if named_params else parameter

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: nn.Module,
                                                    params_and_buffers_to_ignore: Iterable[str]
                                                    ) -> None:
        """Leave parameters and buffers of a model, which is not wrapped yet, to each process."""
        ignored = list(params_and_buffers_to_ignore)
        module._ddp_params_and_buffers_to_ignore = ignored
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            if name in ignored:
                tensor._ddp_ignored = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What is known of the buckets and the processes."""
        return self.logger._get_ddp_logging_data()

    def _set_ddp_runtime_logging_sample_rate(self, sample_rate: int) -> None:
        """Note the times of one in so many passes, after the first ten."""
        if sample_rate < 1:
            raise ValueError("DDP runtime logging sample rate should be equal or greater than 1")
        self.logger.rate = sample_rate

    def _update_process_group(self, new_process_group: Any) -> None:
        """Share gradients in another group."""
        self.process_group = new_process_group
        self.reducer._update_process_group(new_process_group)

    # ---- joining --------------------------------------------------------------------------------

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> Join:
        """A context in which processes may have different numbers of inputs."""
        return Join([self], enable, throw_on_early_termination,
                    divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process that has finished does for the others: see `Join`."""
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> flambeau.device:
        """Where the processes' counting happens."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The processes that join."""
        return self.process_group

    def _any_process_shares(self, is_joined_rank: bool) -> bool:
        """Will gradients of this step be shared, as some process at work says?"""
        shares = flambeau.tensor([float(not is_joined_rank and self.require_backward_grad_sync)])
        dist.all_reduce(shares, group=self.process_group)
        found = bool(shares.item())
        if is_joined_rank:
            self.require_forward_param_sync = found
        return found

    def _sync_final_model(self, is_last_joiner: bool) -> None:
        """Let all have the model of a process that was at work last."""
        rank = flambeau.tensor(dist.get_rank(self.process_group) if is_last_joiner else -1)
        dist.all_reduce(rank, dist.ReduceOp.MAX, group=self.process_group)
        _sync_module_states(self.module, self.process_group, self.broadcast_bucket_size,
                            int(rank.item()), self.parameters_to_ignore)

    # ---- pickling -------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        dist._get_default_group()
        state = dict(self.__dict__)
        for name in ("process_group", "reducer", "logger"):
            state.pop(name)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = dist._get_default_group()
        super().__setstate__(state)
        self._build_reducer(self.bucket_bytes_cap / (1 << 20), self.static_graph)
        if self.static_graph:
            self._set_static_graph()
