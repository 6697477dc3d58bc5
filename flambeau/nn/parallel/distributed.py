"""`DistributedDataParallel`, for a group of one."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook


class GradBucket:
    """Gradients, one after the other in a flat tensor, as a communication hook gets them."""

    def __init__(self, parameters: list[Tensor]):
        self._parameters = parameters
        self._buffer = flambeau.cat([p.grad.detach().reshape(-1) for p in parameters])

    def index(self) -> int:
        """The number of the bucket: 0, there is one."""
        return 0

    def is_last(self) -> bool:
        """Is this the last bucket of a backward pass? Yes."""
        return True

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


class _PostLocal(JoinHook):
    """There is nobody to wait for."""


class DistributedDataParallel(nn.Module, Joinable):
    """A module each of whose copies, one a process, gets the mean of all gradients.

    In a group of one, the only one there is, that mean is the gradient itself. The module is
    called as it is; a communication hook sees all gradients in one bucket after each backward
    pass that reaches all parameters.

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
        self._hook: tuple[Any, Callable[..., Any]] | None = None

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are not shared: they add up, and the first pass after shares them."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: object, hook: Callable[[object, GradBucket], Any]) -> None:
        """Let `hook(state, bucket)` share the gradients: it gives a future of the flat tensor."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be "
                               "called once.")
        self._hook = state, hook
        parameters = [p for p in self.module.parameters() if p.requires_grad]
        waiting = {id(p) for p in parameters}

        def arrived(parameter: Tensor) -> None:
            waiting.discard(id(parameter))
            if not waiting:
                waiting.update(id(p) for p in parameters)
                if self.require_backward_grad_sync:
                    self._run_hook(parameters)
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(arrived)

    def _run_hook(self, parameters: list[Tensor]) -> None:
        state, hook = self._hook
        bucket = GradBucket(parameters)
        found = hook(state, bucket).wait()
        bucket.set_buffer(found[0] if isinstance(found, (list, tuple)) else found)
        with flambeau.no_grad():
            for parameter, gradient in zip(parameters, bucket.gradients()):
                parameter.grad.copy_(gradient)

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
