"""`CheckedBackend`: what every backend of the CPU refuses, before it moves anything.

A class that carries collectives defines `start`, which runs them in their order, and a method
`move_…` for each kind. That gets `turn`, what `start` knows the collective by, and what to move;
it either does so or gives the steps (a generator) in which it will.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.autograd.profiler import recorders
from flambeau.distributed._c10d import checks
from flambeau.distributed._c10d.backends.agreement import Call, call_of
from flambeau.distributed._c10d.backends.backend import Backend
from flambeau.distributed._c10d.reduce_op import op_type
from flambeau.distributed._c10d.refusals import Refusing
from flambeau.distributed._c10d.work import Work

_EVENTS = {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all",
           "allgather_into_tensor": "all_gather"}
Move = Callable[[Any], Any]


class CheckedBackend(Backend, Refusing):
    """Collectives of tensors in memory."""

    def __init__(self, rank: int, size: int):
        Backend.__init__(self, rank, size)
        Refusing.__init__(self)

    def _in(self, call: str) -> str:
        """What the message of a refused call begins with."""
        return f"{type(self).__name__}::{call}"

    def start(self, call: Call, tensors: Any, move: Move, opts: Any) -> Work:
        """Run `move(turn)`, after the collectives that were started before."""
        raise NotImplementedError

    # What a class that carries collectives gives for each of them, by its name.
    move_allreduce: Callable[..., Any]
    move_broadcast: Callable[..., Any]
    move_reduce: Callable[..., Any]
    move_allgather: Callable[..., Any]
    move_allgather_into_tensor: Callable[..., Any]
    move_gather: Callable[..., Any]
    move_scatter: Callable[..., Any]
    move_reduce_scatter: Callable[..., Any]
    move_alltoall: Callable[..., Any]
    move_barrier: Callable[..., Any]

    def launch(self, call: Call, tensors: Any, move: Move, opts: Any,
               shown: Sequence[Tensor] = ()) -> Work:
        """`start`, as an event of profiles, with the shapes of the tensors `shown`."""
        if not recorders:
            return self.start(call, tensors, move, opts)
        shapes = [_real_shape(t.shape, t.dtype) for t in shown] or \
            list(map(_real_shape, call.shapes, call.types))
        return self.recorded(_EVENTS.get(call.name, call.name), shapes,
                             lambda: self.start(call, tensors, move, opts))

    def recorded(self, name: str, shapes: Any, start: Callable[[], Work]) -> Work:
        """What `start` starts, as an event of the profiles that are being made."""
        events = [(recorder, recorder.begin_async(f"{self.name()}:{name}", ()))
                  for recorder in recorders]
        for recorder, event in events:
            event.inputs = shapes if recorder.shapes else None
        work = start()

        def end() -> None:
            for recorder, event in events:
                recorder.end(event)
        work.get_future()._when_done(end)
        return work

    def message(self, name: str, tensors: list[Tensor], start: Callable[[], Work]) -> Work:
        """A message between two processes, as an event of profiles."""
        self.check_notices()
        return start() if not recorders else self.recorded(
            name, [_real_shape(t.shape, t.dtype) for t in tensors], start)

    def others(self) -> list[int]:
        """The other processes, beginning with the next."""
        n = self.size()
        return [(self._rank + i) % n for i in range(1, n)]

    def run_allreduce(self, tensors: list[Tensor], opts: Any) -> Work:
        """All processes' tensors reduced, in place."""
        names = [checks.reduction(tensor, opts.reduceOp, self.name()) for tensor in tensors]
        return self.launch(call_of("allreduce", tensors, names[0] if names else ""), tensors,
                          lambda turn: self.move_allreduce(turn, tensors, names, opts), opts)

    run_allreduce_coalesced = run_allreduce

    def run_broadcast(self, tensors: list[Tensor], opts: Any) -> Work:
        """The tensors of one process for all."""
        root = self._root(opts, "broadcast")
        return self.launch(call_of("broadcast", tensors, f"root {root}"), tensors,
                          lambda turn: self.move_broadcast(turn, tensors, root, opts), opts)

    def run_reduce(self, tensors: list[Tensor], opts: Any) -> Work:
        """All processes' tensors reduced, for one."""
        root = self._root(opts, "reduce")
        names = [checks.reduction(tensor, opts.reduceOp, self.name()) for tensor in tensors]
        return self.launch(call_of("reduce", tensors, f"{names[0]}, root {root}"), tensors,
                          lambda turn: self.move_reduce(turn, tensors, names, root, opts), opts)

    def run_allgather(self, output_tensors: list[list[Tensor]], input_tensors: list[Tensor],
                      opts: Any) -> Work:
        """All processes' tensors, for all."""
        for outputs, tensor in zip(output_tensors, input_tensors):
            checks.outputs(outputs, tensor, self.size(), self._in("allgather"))
        return self.launch(call_of("allgather", input_tensors), output_tensors, lambda turn:
                          self.move_allgather(turn, output_tensors, input_tensors, opts), opts)

    def run_allgather_coalesced(self, output_lists: list[list[Tensor]], input_list: list[Tensor],
                                opts: Any) -> Work:
        """`allgather` of several tensors, whose outputs come process by process."""
        if len(output_lists) != self.size():
            raise RuntimeError(f"{self._in('allgather_coalesced')}: output lists should be equal "
                               "to world size")
        columns = [[outputs[i] for outputs in output_lists] for i in range(len(input_list))]
        return self.run_allgather(columns, input_list, opts)

    def run_allgather_base(self, output: Tensor, input: Tensor, opts: Any) -> Work:
        """All processes' tensors one after the other, for all."""
        return self.run_allgather_into_tensor_coalesced([output], [input], opts)

    def run_allgather_into_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                            opts: Any) -> Work:
        """`_allgather_base` of several tensors."""
        for output, tensor in zip(outputs, inputs):
            checks.whole(output, tensor, self.size(), self._in("allgather"))
        return self.launch(call_of("allgather_into_tensor", inputs), outputs, lambda turn:
                          self.move_allgather_into_tensor(turn, outputs, inputs, opts), opts)

    def run_gather(self, output_tensors: list[list[Tensor]], input_tensors: list[Tensor],
                   opts: Any) -> Work:
        """All processes' tensors, for one."""
        root = self._root(opts, "gather")
        outputs = list(output_tensors[0]) if output_tensors else []
        if self._rank == root:
            checks.gathered(outputs, input_tensors[0], self.size(), self._in("gather"))
        return self.launch(call_of("gather", input_tensors, f"root {root}"), outputs, lambda turn:
                          self.move_gather(turn, outputs, input_tensors[0], root, opts), opts)

    def run_scatter(self, output_tensors: list[Tensor], input_tensors: list[list[Tensor]],
                    opts: Any) -> Work:
        """A tensor of one process for each."""
        root, output = self._root(opts, "scatter"), output_tensors[0]
        parts = list(input_tensors[0]) if input_tensors else []
        if self._rank == root:
            checks.parts(parts, output, self.size(), self._in("scatter"))
        return self.launch(call_of("scatter", output_tensors, f"root {root}"), output_tensors,
                          lambda turn: self.move_scatter(turn, output, parts, root, opts), opts)

    def run_reduce_scatter(self, output_tensors: list[Tensor], input_tensors: list[list[Tensor]],
                           opts: Any) -> Work:
        """All entries i of all processes reduced, for process i; entries may differ in size."""
        names = []
        for output, parts in zip(output_tensors, input_tensors):
            checks.parts_to_reduce(parts, output, self._rank, self.size(),
                                   self._in("reduce_scatter"))
            names.append(checks.reduction(output, opts.reduceOp, self.name()))
        call = call_of("reduce_scatter", [part for parts in input_tensors for part in parts],
                       op_type(opts.reduceOp).name)
        return self.launch(call, output_tensors, lambda turn: self.move_reduce_scatter(
            turn, output_tensors, input_tensors, names, opts), opts)

    def run_reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any) -> Work:
        """All processes' tensors reduced, part i for process i."""
        return self.run_reduce_scatter_tensor_coalesced([output], [input], opts)

    def run_reduce_scatter_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                            opts: Any) -> Work:
        """`_reduce_scatter_base` of several tensors."""
        for output, tensor in zip(outputs, inputs):
            checks.whole(tensor, output, self.size(), self._in("reduce_scatter"))
        parts = [[part.view(output.shape) for part in tensor.detach().reshape(self.size(), -1)]
                 for output, tensor in zip(outputs, inputs)]
        return self.run_reduce_scatter(outputs, parts, opts)

    def run_alltoall(self, output_tensors: list[Tensor], input_tensors: list[Tensor], opts: Any
                     ) -> Work:
        """Entry j of process i's outputs becomes entry i of process j's inputs."""
        for values, name in ((output_tensors, "output"), (input_tensors, "input")):
            if len(values) != self.size():
                raise RuntimeError(f"{self._in('alltoall')}: {name} tensor list size "
                                   f"{len(values)} does not match world size {self.size()}")
        checks.same_type(*output_tensors, *input_tensors)
        return self._all_to_all(output_tensors, input_tensors, opts, input_tensors)

    def _all_to_all(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any,
                    shown: list[Tensor]) -> Work:
        call = Call("alltoall", (inputs[0].dtype,), ((),))
        return self.launch(call, outputs, lambda turn: self.move_alltoall(
            turn, outputs, inputs, opts), opts, shown)

    def run_alltoall_base(self, output: Tensor, input: Tensor, output_split_sizes: list[int],
                          input_split_sizes: list[int], opts: Any) -> Work:
        """`alltoall` of parts of one tensor."""
        outputs = checks.split(output, output_split_sizes, self.size())
        inputs = checks.split(input, input_split_sizes, self.size())
        checks.same_type(*outputs, inputs[0])
        return self._all_to_all(outputs, inputs, opts, [input])

    def run_barrier(self, opts: Any) -> Work:
        """Wait for all processes."""
        return self.launch(Call("barrier"), [], lambda turn: self.move_barrier(turn, opts), opts)

    def _root(self, opts: Any, call: str) -> int:
        root = opts.rootRank
        if not 0 <= root < self.size():
            raise RuntimeError(f"{self._in(call)}: invalid root rank: {root}")
        return root

    def _keep(self, outputs: list[Tensor], found: list[Tensor], what: str) -> None:
        with flambeau.no_grad():
            for output, value in zip(outputs, found):
                output.copy_(checks.fitting(value, output, self._in(what)))


def _real_shape(shape: Any, dtype: Any) -> list[int]:
    """Complex tensors travel as pairs of real numbers."""
    return [*shape, 2] if dtype.is_complex else list(shape)
