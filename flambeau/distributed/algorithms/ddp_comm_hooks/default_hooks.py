"""The mean of the gradients, in their own type or in one of half the size."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.futures import Future

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook",
           "fp16_compress_wrapper"]

Hook = Callable[[Any, Any], Future]


def _allreduce_fut(process_group: Any, tensor: Tensor) -> Future[Tensor]:
    """A future of the mean of all processes' tensors, which is computed in place."""
    group = dist.group.WORLD if process_group is None else process_group
    tensor.div_(group.size())
    work = dist.all_reduce(tensor, group=group, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The mean of the gradients: what happens without a hook."""
    return _allreduce_fut(process_group, bucket.buffer())


def _compress_hook(dtype: flambeau.dtype, process_group: Any, bucket: Any) -> Future[Tensor]:
    """The mean of the gradients, which travel as `dtype`."""
    buffer = bucket.buffer()
    mean = _allreduce_fut(process_group, buffer.to(dtype))
    return mean.then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The mean of the gradients, which travel as float16.

    >>> model.register_comm_hook(None, fp16_compress_hook)                    # doctest: +SKIP
    """
    return _compress_hook(flambeau.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The mean of the gradients, which travel as bfloat16."""
    return _compress_hook(flambeau.bfloat16, process_group, bucket)


def _compressed(hook: Hook, dtype: flambeau.dtype, name: str) -> Hook:
    def compressing(hook_state: Any, bucket: Any) -> Future[Tensor]:
        original = bucket.buffer()
        bucket.set_buffer(original.to(dtype))
        return hook(hook_state, bucket).then(lambda done: original.copy_(done.value()))
    compressing.__name__ = compressing.__qualname__ = name
    return compressing


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """`hook`, which gets the gradients as float16.

    >>> model.register_comm_hook(state, fp16_compress_wrapper(powerSGD_hook)) # doctest: +SKIP
    """
    return _compressed(hook, flambeau.float16, "fp16_compress_wrapper_hook")


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """`hook`, which gets the gradients as bfloat16."""
    return _compressed(hook, flambeau.bfloat16, "bf16_compress_wrapper_hook")
