"""Gradients that are shared, bucket by bucket, while the backward pass runs."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.autograd.variable import Variable
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._c10d.collectives import sum_of_sparse
from flambeau.distributed._c10d.options import AllreduceOptions
from flambeau.futures import Future

__all__ = ["GradBucket", "Reducer"]


class GradBucket:
    """Gradients, one after the other in a flat tensor, as a communication hook gets them."""

    def __init__(self, parameters: list[Tensor], index: int = 0, is_last: bool = True,
                 zeros: bool = False):
        self._parameters, self._index, self._is_last = parameters, index, is_last
        self._buffer = flambeau.cat([
            (flambeau.zeros_like(p) if p.grad is None or zeros else p.grad).detach().reshape(-1)
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


def assign_buckets(parameters: list[Tensor], sparse: list[bool], first: int, cap: int
                   ) -> list[list[int]]:
    """The numbers of parameters of one type, in the order in which their gradients come, from the
    last, in buckets of so many bytes, the first smaller, so that sharing begins early. Those with
    sparse gradients have a bucket each."""
    found: list[list[int]] = []
    room, dtype = 0, None
    for i, parameter in reversed(list(enumerate(parameters))):
        size = parameter.numel() * parameter.element_size()
        if not found or size > room or parameter.dtype is not dtype or sparse[i]:
            room = cap if found else first
            found.append([])
        dtype = None if sparse[i] else parameter.dtype
        found[-1].append(i)
        room -= size
    return found


class Reducer:
    """Shares the gradients of a backward pass, bucket by bucket, while it runs.

    When all gradients of a bucket are there, and those before it are on their way, its mean over
    the processes is asked for; with the last gradient of all, the means are waited for and become
    the gradients. Where the graph is static, what no gradient has come for by the end of the
    backward pass counts as unused.
    """

    def __init__(self, params: Any, bucket_indices: Any, per_bucket_size_limits: Any,
                 process_group: Any, expect_sparse_gradients: Any = (),
                 bucket_bytes_cap: int = 25 << 20, find_unused_parameters: bool = False,
                 gradient_as_bucket_view: bool = False, param_to_name_mapping: Any = None,
                 first_bucket_bytes_cap: int = 1 << 20, **_: Any):
        self.group, self.find_unused = process_group, find_unused_parameters
        parameters = self.parameters = list(params)
        self.names = param_to_name_mapping or {}
        self.sparse = {id(p) for p, sparse in zip(parameters, expect_sparse_gradients) if sparse}
        self.buckets = [[parameters[i] for i in indices] for indices in bucket_indices]
        self._place = {id(p): i for i, bucket in enumerate(self.buckets) for p in bucket}
        self.hook: tuple[Any, Callable[..., Any]] | None = None
        self.enabled, self.static_graph, self.as_views = True, False, gradient_as_bucket_view
        self.joining: Any = None            # how many processes take part, where they may finish
        self.bytes_cap = bucket_bytes_cap
        self._active = False
        self.iterations = 0                 # passes that were to share gradients
        self.times: dict[str, int] = {}     # when what happened in the last one
        self._used: set[int] = set()        # ids of parameters that got gradients
        self.ready: list[int] = []          # the order in which gradients came
        self._index = {id(p): i for i, p in enumerate(parameters)}
        self._handles = [parameter.register_post_accumulate_grad_hook(self._arrived)
                         for parameter in parameters if parameter.requires_grad]

    # ---- a pass ---------------------------------------------------------------------------------

    def prepare_for_forward(self) -> None:
        """Before a pass: the one before must have shared all gradients."""
        self.iterations += 1
        if self._active and self._started:
            waiting = [id(p) for bucket in self._waiting for p in self.parameters
                       if id(p) in bucket]
            unused = sorted({i for i, p in enumerate(self.parameters) if id(p) in waiting})
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new "
                "one. This error indicates that your module has parameters that were not used in "
                "producing loss. You can enable unused parameter detection by passing the keyword "
                "argument `find_unused_parameters=True` to "
                "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` "
                "function outputs participate in calculating loss.\nParameter indices which did "
                f"not receive grad for rank {self.group.rank()}: {' '.join(map(str, unused))}")
        self._active = False
        self.times["forward_compute_time_start"] = time.time_ns()

    def prepare_for_backward(self, outputs: list[Tensor]) -> None:
        """Before a backward pass that is to share gradients; those that it will not reach count
        as shared."""
        self._active, self._started = True, False
        self.times["backward_compute_time_start"] = time.time_ns()
        self.ready = []
        self._waiting = [{id(p) for p in bucket} for bucket in self.buckets]
        self._works: list[Any] = []
        if self.find_unused and not self.static_graph:
            reached = _reached(outputs)
            for parameter in self.parameters:
                if id(parameter) not in reached:
                    self._waiting[self._place[id(parameter)]].discard(id(parameter))

    def _arrived(self, parameter: Tensor) -> None:
        self._used.add(id(parameter))
        if not (self._active and self.enabled):
            return
        if not self._started and self.static_graph:
            Variable._execution_engine.queue_callback(self._end_of_backward)
        self._started = True
        self.ready.append(self._index[id(parameter)])
        self._waiting[self._place[id(parameter)]].discard(id(parameter))
        self._advance()

    def _advance(self) -> None:
        while len(self._works) < len(self.buckets) and not self._waiting[len(self._works)]:
            self._start(len(self._works))
        if len(self._works) == len(self.buckets):
            self._finish()

    def _end_of_backward(self) -> None:
        if self._active:
            for waiting in self._waiting:
                waiting.clear()
            self._advance()

    def _bucket(self, index: int, zeros: bool = False) -> GradBucket:
        return GradBucket(self.buckets[index], index, index == len(self.buckets) - 1, zeros)

    def _start(self, index: int) -> None:
        """Ask for the mean of a bucket."""
        if index == 0:
            self.times["backward_comm_time_start"] = time.time_ns()
        parameters = self.buckets[index]
        if len(parameters) == 1 and id(parameters[0]) in self.sparse:
            self._works.append((None, self._sparse_mean(parameters[0])))
            return
        bucket = self._bucket(index)
        self._works.append((bucket, self._shared(bucket)))

    def _shared(self, bucket: GradBucket) -> Any:
        """Ask for the mean of a bucket: a future or the work. The last one is waited for at once,
        and nobody else has to look after it."""
        if self.hook is not None or self.group.size() == 1:
            return self._run_comm_hook(bucket)
        bucket.buffer().div_(self._divisor())
        return self.group.allreduce([bucket.buffer()],
                                    AllreduceOptions(asyncOp=not bucket.is_last()))

    def _divisor(self) -> int:
        """How many processes gradients are the mean of."""
        return self.group.size() if self.joining is None else int(self.joining())

    def _run_comm_hook(self, bucket: GradBucket) -> Any:
        """Ask for the mean of a bucket; a future of the flat tensor, None where nobody is asked."""
        if self.hook is not None:
            state, hook = self.hook
            future = hook(state, bucket)
            if not isinstance(future, Future):
                raise RuntimeError("DDP communication hook's callback must return a "
                                   "torch.futures.Future object, but got "
                                   f"{type(future).__module__}.{type(future).__name__}")
            return future
        return self._run_allreduce_hook(bucket) if self.group.size() > 1 else None

    def _run_allreduce_hook(self, bucket: GradBucket) -> Future:
        """Ask for the mean of a bucket, without a hook."""
        bucket.buffer().div_(self._divisor())
        return dist.all_reduce(bucket.buffer(), group=self.group, async_op=True).get_future()

    def _sparse_mean(self, parameter: Tensor) -> None:
        """The mean of sparse gradients, of which each process may have other entries."""
        gradient = parameter.grad
        if gradient is None:
            gradient = flambeau.zeros_like(parameter).to_sparse(1)      # type: ignore[call-arg]
        parameter.grad = sum_of_sparse(gradient, self.group) / self._divisor()

    def _finish(self) -> None:
        """Wait for the means: they become the gradients."""
        self._active = False
        self.times["backward_compute_time_end"] = time.time_ns()
        wanted = self._wanted()
        for bucket, future in self._works:
            if bucket is None:
                continue
            if isinstance(future, Future):
                found = future.wait()
                bucket.set_buffer(found[0] if isinstance(found, (list, tuple)) else found)
            elif future is not None:
                future.wait()
            elif not self.as_views:
                continue
            self._write(bucket, wanted)
        self.times["backward_comm_time_end"] = time.time_ns()
        self._used.clear()

    def _write(self, bucket: GradBucket, wanted: set[int]) -> None:
        with flambeau.no_grad():
            for parameter, gradient in zip(bucket.parameters(), bucket.gradients()):
                if getattr(parameter, "_in_backward_optimizers", None):
                    parameter.grad = None
                elif parameter.grad is None and id(parameter) not in wanted:
                    continue
                elif self.as_views:
                    parameter.grad = gradient
                elif parameter.grad is not None:
                    parameter.grad.copy_(gradient)
                else:
                    parameter.grad = gradient.clone()

    def _wanted(self) -> set[int]:
        """The parameters that some process has used."""
        if not self.find_unused and not self.static_graph:
            return {id(p) for p in self.parameters}
        used = self._get_local_used_map()
        dist.all_reduce(used, group=self.group)
        return {id(p) for p, n in zip(self.parameters, used.tolist()) if n}

    def _get_local_used_map(self) -> Tensor:
        """For each parameter, 1 if this process has used it."""
        return flambeau.tensor([int(id(p) in self._used) for p in self.parameters],
                               dtype=flambeau.int32)

    # ---- a pass of others, in which this process has no part --------------------------------

    def shadow(self) -> None:
        """Take part in the sharing of one backward pass of the others, with zeros; the means
        become the gradients here too."""
        self._used.clear()
        works = []
        for index, parameters in enumerate(self.buckets):
            if len(parameters) == 1 and id(parameters[0]) in self.sparse:
                parameters[0].grad = None
                self._sparse_mean(parameters[0])
                continue
            bucket = self._bucket(index, zeros=True)
            works.append((bucket, self._shared(bucket)))
        self._works = works
        self._finish()

    # ---- PyTorch's names ------------------------------------------------------------------------

    def _set_static_graph(self) -> None:
        if self.iterations:
            raise RuntimeError("set_static_graph() should be called before training loop starts "
                               "and after DistributedDataParallel is constructed.")
        self.static_graph = True

    def _remove_autograd_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _rebuild_buckets(self) -> bool:
        """Buckets stay as they are: has their order changed? No."""
        return False

    def _update_process_group(self, new_process_group: Any) -> None:
        self.group = new_process_group

    def _get_zeros_like_grad_buckets(self) -> list[GradBucket]:
        return [self._bucket(index, zeros=True) for index in range(len(self.buckets))]


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
