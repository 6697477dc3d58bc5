"""`DistributedDataParallel`: copies of a module that share their gradients."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook
from flambeau.utils import _pytree


class GradBucket:
    """Gradients, one after the other in a flat tensor, as a communication hook gets them."""

    def __init__(self, parameters: list[Tensor], index: int = 0, is_last: bool = True):
        self._parameters, self._index, self._is_last = parameters, index, is_last
        self._buffer = flambeau.cat([
            (flambeau.zeros_like(p) if p.grad is None else p.grad).detach().reshape(-1)
            for p in parameters])

    def index(self) -> int:
        """The number of the bucket."""
        return self._index

    def is_last(self) -> bool:
        """Is this the last bucket of a backward pass?"""
        return self._is_last

    def buffer(self) -> Tensor:
        """The flat tensor."""
        return self._buffer

    def set_buffer(self, tensor: Tensor) -> None:
        """Put another flat tensor in its place."""
        self._buffer = tensor

    def parameters(self) -> list[Tensor]:
        """Those whose gradients these are."""
        return list(self._parameters)

    def gradients(self) -> list[Tensor]:
        """The flat tensor in the shapes of the parameters."""
        parts = self._buffer.split([p.numel() for p in self._parameters])
        return [part.view(p.shape) for part, p in zip(parts, self._parameters)]


def _buckets(parameters: list[Tensor], first: int, cap: int) -> list[list[int]]:
    """The numbers of parameters of one type, in the order in which their gradients come, from the
    last, in buckets of so many bytes, the first smaller, so that sharing begins early."""
    found: list[list[int]] = []
    room, dtype = 0, None
    for i, parameter in reversed(list(enumerate(parameters))):
        size = parameter.numel() * parameter.element_size()
        if not found or size > room or parameter.dtype is not dtype:
            room = cap if found else first
            found.append([])
        dtype = parameter.dtype
        found[-1].append(i)
        room -= size
    return found


class Reducer:
    """Shares the gradients of a backward pass, bucket by bucket, while it runs.

    When all gradients of a bucket are there, and those before it are on their way, its mean over
    the processes is asked for; with the last gradient of all, the means are waited for and become
    the gradients.
    """

    def __init__(self, params: Any, bucket_indices: Any, per_bucket_size_limits: Any,
                 process_group: Any, expect_sparse_gradients: Any = (),
                 bucket_bytes_cap: int = 25 << 20, find_unused_parameters: bool = False,
                 gradient_as_bucket_view: bool = False, param_to_name_mapping: Any = None,
                 first_bucket_bytes_cap: int = 1 << 20, **_: Any):
        if any(expect_sparse_gradients):
            raise NotImplementedError("Reducer: sparse gradients")
        self.group, self.find_unused = process_group, find_unused_parameters
        parameters = self.parameters = list(params)
        self.buckets = [[parameters[i] for i in indices] for indices in bucket_indices]
        self.hook: tuple[Any, Callable[..., Any]] | None = None
        self.enabled = True
        self._place = {id(p): i for i, bucket in enumerate(self.buckets) for p in bucket}
        self._active = False
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._arrived)
        self.prepare_for_forward()

    def prepare_for_forward(self) -> None:
        """Before a pass: the one before must have shared all gradients."""
        if self._active and self._started:
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new "
                "one. This error indicates that your module has parameters that were not used in "
                "producing loss. You can enable unused parameter detection by passing the keyword "
                "argument `find_unused_parameters=True` to "
                "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` "
                "function outputs participate in calculating loss.")
        self._active = False

    def prepare_for_backward(self, outputs: list[Tensor]) -> None:
        """Before a backward pass that is to share gradients; those that it will not reach count
        as shared."""
        self._active, self._started = True, False
        self._waiting = [{id(p) for p in bucket} for bucket in self.buckets]
        self._works: list[Any] = []
        self._used: dict[int, bool] = {}
        if self.find_unused:
            reached = _reached(outputs)
            for parameter in self.parameters:
                if id(parameter) not in reached:
                    self._waiting[self._place[id(parameter)]].discard(id(parameter))

    def _arrived(self, parameter: Tensor) -> None:
        if not (self._active and self.enabled):
            return
        self._started = True
        self._used[id(parameter)] = True
        self._waiting[self._place[id(parameter)]].discard(id(parameter))
        while len(self._works) < len(self.buckets) and not self._waiting[len(self._works)]:
            self._start(len(self._works))
        if len(self._works) == len(self.buckets):
            self._finish()

    def _start(self, index: int) -> None:
        """Ask for the mean of a bucket."""
        bucket = GradBucket(self.buckets[index], index, index == len(self.buckets) - 1)
        if self.hook is not None:
            state, hook = self.hook
            self._works.append((bucket, hook(state, bucket)))
        elif self.group.size() > 1:
            bucket.buffer().div_(self.group.size())
            self._works.append((bucket, dist.all_reduce(bucket.buffer(), group=self.group,
                                                        async_op=True).get_future()))
        else:
            self._works.append((bucket, None))

    def _finish(self) -> None:
        """Wait for the means: they become the gradients."""
        self._active = False
        wanted = self._wanted()
        for bucket, future in self._works:
            if future is None:
                continue
            found = future.wait()
            bucket.set_buffer(found[0] if isinstance(found, (list, tuple)) else found)
            with flambeau.no_grad():
                for parameter, gradient in zip(bucket.parameters(), bucket.gradients()):
                    if parameter.grad is not None:
                        parameter.grad.copy_(gradient)
                    elif id(parameter) in wanted:
                        parameter.grad = gradient.clone()

    def _wanted(self) -> set[int]:
        """The parameters that some process has used."""
        if not self.find_unused:
            return {id(p) for p in self.parameters}
        used = flambeau.tensor([int(id(p) in self._used) for p in self.parameters])
        dist.all_reduce(used, group=self.group)
        return {id(p) for p, n in zip(self.parameters, used.tolist()) if n}


class Logger:
    """What can be said of a `Reducer`."""

    def __init__(self, reducer: Reducer):
        self.reducer = reducer
        self._said: dict[str, Any] = {}

    def set_construction_data_and_log(self, module_name: str, device_ids: Any, output_device: Any,
                                      broadcast_buffers: bool, has_sync_bn: bool,
                                      static_graph: bool) -> None:
        """Note how the module was wrapped."""
        self._said.update(module_name=module_name, broadcast_buffers=broadcast_buffers,
                          has_sync_bn=has_sync_bn, static_graph=static_graph)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """All that is known."""
        reducer = self.reducer
        sizes = [sum(p.numel() * p.element_size() for p in bucket) for bucket in reducer.buckets]
        return {"world_size": reducer.group.size(), "rank": reducer.group.rank(),
                "backend_name": reducer.group.name(),
                "num_parameter_tensors": len(reducer.parameters),
                "total_parameter_size_bytes": sum(sizes),
                "bucket_sizes": ", ".join(map(str, sizes)), **self._said}


def _reached(outputs: list[Tensor]) -> set[int]:
    """The leaves that a backward pass from these tensors reaches."""
    found, seen = {id(t) for t in outputs if t.grad_fn is None}, set()
    todo = [t.grad_fn for t in outputs if t.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        todo += [following for following, _ in node.next_functions if following is not None]
    return found


def _mean(group: Any, bucket: GradBucket) -> Any:
    """The mean of the gradients."""
    flat = bucket.buffer().div_(group.size())
    return dist.all_reduce(flat, group=group, async_op=True).get_future()


def _half_mean(group: Any, bucket: GradBucket) -> Any:
    """The mean of the gradients, which travel in half precision."""
    flat = bucket.buffer()
    half = flat.half().div_(group.size())
    work = dist.all_reduce(half, group=group, async_op=True)
    return work.get_future().then(lambda done: flat.copy_(done.value()[0]))


class _PostLocal(JoinHook):
    """There is nobody to wait for."""


class DistributedDataParallel(nn.Module, Joinable):
    """A module each of whose copies, one a process, gets the mean of all gradients.

    All copies begin with the parameters and buffers of the first process. Gradients are shared in
    buckets while the backward pass runs; with `find_unused_parameters`, a pass may leave some
    parameters out.

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = DistributedDataParallel(nn.Linear(2, 1))
    >>> model(flambeau.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    def __init__(self, module: nn.Module, device_ids: Any = None, output_device: Any = None,
                 dim: int = 0, broadcast_buffers: bool = True, init_sync: bool = True,
                 process_group: Any = None, bucket_cap_mb: float | None = None,
                 find_unused_parameters: bool = False, check_reduction: bool = False,
                 gradient_as_bucket_view: bool = False, static_graph: bool = False,
                 delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None,
                 mixed_precision: Any = None, device_mesh: Any = None,
                 skip_all_reduce_unused_params: bool = False):
        super().__init__()
        for name, value in (("mixed_precision", mixed_precision), ("device_mesh", device_mesh)):
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name}")
        self.process_group = process_group or dist._get_default_group()
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have "
                               "any parameters that require a gradient.")
        if device_ids:
            raise ValueError("device_ids can only be None or contain a single element on a "
                             f"device with indices; the CPU has none, got {device_ids}")
        self.module = module
        self.device = next(p for p in module.parameters() if p.requires_grad).device
        self.device_type = self.device.type
        self.device_ids = self.output_device = None
        self.dim, self.broadcast_buffers = dim, broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = True
        parameters = [p for p in module.parameters() if p.requires_grad]
        cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * (1 << 20))
        first = 1 << 20 if bucket_cap_mb is None else cap
        if init_sync:
            self._share([*module.parameters(), *module.buffers()])
        limits = [min(first, cap), cap]
        self.reducer = Reducer(parameters, _buckets(parameters, *limits), limits,
                               self.process_group, (), cap, find_unused_parameters,
                               gradient_as_bucket_view)
        self.logger = Logger(self.reducer)

    def _share(self, tensors: list[Tensor]) -> None:
        """Let all processes have the first one's values."""
        if self.process_group.size() > 1:
            for tensor in tensors:
                dist.broadcast(tensor.detach(), group=self.process_group, group_src=0)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        shares = flambeau.is_grad_enabled() and self.require_backward_grad_sync
        if shares:
            self.reducer.prepare_for_forward()
            if self.broadcast_buffers:
                self._share(list(self.module.buffers()))
        result = self.module(*inputs, **kwargs)
        if shares:
            self.reducer.prepare_for_backward(
                [t for t in _pytree.tree_leaves(result) if isinstance(t, Tensor)
                 and t.requires_grad])
        return result

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are not shared: they add up, and the first pass after shares them."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = self.reducer.enabled = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = self.reducer.enabled = before

    def register_comm_hook(self, state: object, hook: Callable[[object, GradBucket], Any]) -> None:
        """Let `hook(state, bucket)` share the gradients: it gives a future of the flat tensor."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be "
                               "called once.")
        self.reducer.hook = state, hook

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        """Share gradients in a way that has a name."""
        hooks = {1: _mean, 2: _half_mean}
        self.register_comm_hook(self.process_group, hooks[int(comm_hook_type)])

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> Join:
        """A context in which processes may have different numbers of inputs."""
        return Join([self], enable, throw_on_early_termination,
                    divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process that has finished does for the others: nothing, there are none."""
        return _PostLocal()

    @property
    def join_device(self) -> flambeau.device:
        """Where the processes' counting happens."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The processes that join."""
        return self.process_group


__all__ = ["DistributedDataParallel"]
