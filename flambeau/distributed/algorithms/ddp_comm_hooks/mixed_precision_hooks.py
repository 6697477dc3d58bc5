"""The hook of `DistributedDataParallel` in mixed precision: gradients travel in the type in which
they were computed, and are kept in that of the parameters."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.futures import Future


@dataclass
class _AllreduceUpcastHookState:
    """The wrapper, as a weak reference; the stream on which types change, where there are some."""

    ddp_weakref: Any
    upcast_stream: Any
    wait_for_stream_enqueued: bool = False


@flambeau.no_grad()
def _reducer_allreduce_and_upcast_hook(hook_state: _AllreduceUpcastHookState, bucket: Any
                                       ) -> Future[Tensor]:
    """The mean of a bucket's gradients, in the type that the wrapper's `mixed_precision` names for
    it; then the parameters, and their gradients, in the type that they are kept in."""
    ddp = hook_state.ddp_weakref()
    wanted = ddp.mixed_precision
    travels = bucket.buffer()
    if wanted.reduce_dtype is not None:
        travels = travels.to(wanted.reduce_dtype)
    group = ddp.process_group
    work = dist.all_reduce(travels.div_(group.size()), group=group, async_op=True)

    def upcast(done: Future[Any]) -> Tensor:
        mean = done.value()[0]
        bucket.set_buffer(mean)
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients()):
            kept = getattr(parameter, "_fp_param", None)
            if kept is not None:
                parameter.data = kept
            parameter.grad = gradient.to(parameter.dtype)
        return mean
    return work.get_future().then(upcast)
