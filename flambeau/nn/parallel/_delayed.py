"""Gradients that are shared all at once, when that of a parameter of the user's choice comes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from flambeau.autograd.variable import Variable
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._c10d.collectives import broadcast_coalesced

__all__ = ["DelayedSharing"]


class DelayedSharing:
    """When the gradient of `trigger` has come, the mean of those of `parameters` is asked for, or
    at the end of the backward pass if some come later; then it is in their place. `wanted` says
    whether passes share.

    The parameters become those of the first process, unless `init_sync` is false.
    """

    def __init__(self, parameters: list[Tensor], trigger: Tensor, group: Any,
                 wanted: Callable[[], bool], init_sync: bool, most_bytes: int):
        self.parameters, self.group, self.wanted = parameters, group, wanted
        self._missing = {id(p) for p in parameters}
        if init_sync and group.size() > 1:
            broadcast_coalesced(group, [p.detach() for p in parameters], most_bytes, 0)
        self.handles = [p.register_post_accumulate_grad_hook(self._arrived) for p in parameters]
        self.handles.append(trigger.register_post_accumulate_grad_hook(self._triggered))

    def _arrived(self, parameter: Tensor) -> None:
        self._missing.discard(id(parameter))

    def _triggered(self, trigger: Tensor) -> None:
        wanted = self.wanted()
        started = self._start() if wanted and not self._missing else None

        def end() -> None:
            self._missing = {id(p) for p in self.parameters}
            if wanted:
                self._finish(*started or self._start())
        Variable._execution_engine.queue_callback(end)

    def _start(self) -> tuple[Tensor, Any]:
        flat = _flatten_dense_tensors([
            (flambeau.zeros_like(p) if p.grad is None else p.grad).detach()
            for p in self.parameters]).div_(self.group.size())
        return flat, dist.all_reduce(flat, group=self.group, async_op=True)

    def _finish(self, flat: Tensor, work: Any) -> None:
        work.wait()
        parts = _unflatten_dense_tensors(flat, self.parameters)
        for parameter, part in zip(self.parameters, parts):
            parameter.grad = part
