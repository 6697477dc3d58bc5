"""`ProcessGroupGloo`: collectives made of messages over TCP.

A collective runs in a thread of its group, in the order of the calls; `Work` waits for it. What
is reduced is cut into a part for each process, which adds up that part of all, in the order of
the ranks: so all processes get the same bits.
"""
from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed._c10d import checks
from flambeau.distributed._c10d.backend import Backend, Options
from flambeau.distributed._c10d.transport import Peers, Receipt
from flambeau.distributed._c10d.work import Work
from flambeau.distributed.constants import default_pg_timeout
from flambeau.distributed.stores import Store

comm_name: ContextVar[str | None] = ContextVar("comm_name", default=None)


# ---- tensors as bytes ---------------------------------------------------------------------------

def as_bytes(tensor: Tensor) -> memoryview:
    """The values of a tensor, in order."""
    plain = tensor.detach().contiguous().reshape(-1)
    if not plain.numel():
        return memoryview(b"")
    return memoryview(plain.view(flambeau.uint8).numpy())


def of_bytes(data: bytearray, like: Tensor) -> Tensor:
    """A flat tensor of these bytes."""
    if not data:
        return flambeau.empty(0, dtype=like.dtype)
    return flambeau.frombuffer(data, dtype=flambeau.uint8).view(like.dtype)


_REDUCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "SUM": lambda a, b: a + b, "AVG": lambda a, b: a + b, "PRODUCT": lambda a, b: a * b,
    "MIN": flambeau.minimum, "MAX": flambeau.maximum, "BAND": lambda a, b: a & b,
    "BOR": lambda a, b: a | b, "BXOR": lambda a, b: a ^ b}


def reduced(parts: list[Tensor], op: str) -> Tensor:
    """The parts of all processes as one."""
    return functools.reduce(_REDUCTIONS[op], parts)


class GlooOptions(Options):
    """How gloo is made: only its timeout matters here."""

    def __init__(self, timeout: timedelta = default_pg_timeout):
        super().__init__("gloo", timeout)
        self._devices: list[Any] = []
        self._threads = 2


class Device:
    """The network interface that gloo uses: the one that reaches the store."""

    def __init__(self, hostname: str = "", interface: str = ""):
        self.hostname, self.interface = hostname, interface


class ProcessGroupGloo(Backend):
    """Collectives over TCP, of processes that find each other through a store."""

    Device, _Options, Options = Device, GlooOptions, GlooOptions
    supports_splitting = True

    def __init__(self, store: Store, rank: int, size: int, options: Any = None, *,
                 timeout: timedelta | None = None, peers: Peers | None = None,
                 ranks: list[int] | None = None, name: str = ""):
        super().__init__(rank, size)
        if isinstance(options, timedelta):
            options, timeout = None, options
        self._options = options or GlooOptions()
        if timeout is not None:
            self._options._timeout = timeout
        self._own_peers = peers is None
        self.peers = Peers(store, rank, size, self._options._timeout) if peers is None else peers
        self.ranks = list(range(size)) if ranks is None else ranks
        self.group_name = name
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._sends: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._sender: threading.Thread | None = None
        self._count = 0

    def name(self) -> str:
        """gloo"""
        return "gloo"

    @staticmethod
    def create_device(hostname: str = "", interface: str = "", lazy_init: bool | None = None
                      ) -> Device:
        """The network interface of that name or address."""
        return Device(hostname, interface)

    @staticmethod
    def create_default_device(lazy_init: bool | None = None) -> Device:
        """The network interface that reaches the store."""
        return Device()

    # ---- running collectives --------------------------------------------------------------------

    def start(self, tensors: Any, run: Callable[[bytes], None]) -> Work:
        """Run a collective, after those that were started before; `run` gets its key."""
        name = comm_name.get()
        if name is not None:
            run = functools.partial(_profiled, name, run)
        self._count += 1
        key = f"{self.group_name}:{self._count}".encode()
        if self.size() == 1:
            with flambeau.no_grad():
                run(key)
            return Work(tensors)
        work = Work(tensors, done=False)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._calls.put((work, run, key))
        return work

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            work, run, key = call
            error: BaseException | None = None
            try:
                with flambeau.no_grad():
                    run(key)
            except Exception as raised:
                error = raised
            work._finish(error)

    def _in_background(self, run: Callable[[], None]) -> None:
        """Run something in a thread of its own, before what is started there later."""
        if self._sender is None:
            self._sender = threading.Thread(target=self._send, daemon=True)
            self._sender.start()
        self._sends.put(run)

    def _send(self) -> None:
        while (run := self._sends.get()) is not None:
            run()

    def shutdown(self) -> None:
        """End the group's threads, and hang up if the connections are its own."""
        self._calls.put(None)
        self._sends.put(None)
        if self._own_peers:
            self.peers.close()

    # ---- messages -------------------------------------------------------------------------------

    def put(self, to: int, key: bytes, tensor: Tensor) -> None:
        """Send a tensor to a process of the group."""
        self.peers.send(self.ranks[to], key, as_bytes(tensor))

    def take(self, source: int, key: bytes, like: Tensor, opts: Any, what: str) -> Tensor:
        """The tensor that a process of the group has sent."""
        seconds = self._timeout_of(opts).total_seconds()
        return of_bytes(self.peers.receive([self.ranks[source]], key, seconds, what)[1], like)

    def others(self) -> list[int]:
        """The other processes, beginning with the next."""
        n = self.size()
        return [(self._rank + i) % n for i in range(1, n)]

    def send(self, tensors: list[Tensor], dstRank: int, tag: int = 0) -> Work:
        """Send a tensor to another process."""
        copies, key = [t.detach().clone() for t in tensors], self._message(tag)
        work = Work(tensors, done=False, limit=self.options._timeout)

        def run() -> None:
            error: BaseException | None = None
            try:
                for copy in copies:
                    self.put(dstRank, key, copy)
            except Exception as raised:
                error = raised
            work._finish(error)
        self._in_background(run)
        return work

    def recv(self, tensors: list[Tensor], srcRank: int, tag: int = 0) -> Work:
        """Receive a tensor from another process."""
        return self._receive(tensors, [srcRank], tag)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        """Receive a tensor from any process."""
        return self._receive(tensors, self.others(), tag)

    def _message(self, tag: int) -> bytes:
        return f"{self.group_name}:p2p:{tag}".encode()

    def _receive(self, tensors: list[Tensor], sources: list[int], tag: int) -> Work:
        work = Work(tensors, done=False, limit=self.options._timeout)
        left = list(tensors)

        def use(receipt: Receipt) -> None:
            error: BaseException | None = receipt.error
            if error is None:
                try:
                    with flambeau.no_grad():
                        tensor = left.pop(0)
                        tensor.copy_(checks.fitting(of_bytes(receipt.body, tensor), tensor,
                                                    "recv"))
                except Exception as raised:
                    error = raised
            if error is not None or not left:
                work._source = self.ranks.index(receipt.source) if error is None else None
                work._finish(error)
        for _ in tensors:
            self.peers.expect([self.ranks[s] for s in sources], self._message(tag), use)
        return work

    # ---- collectives ----------------------------------------------------------------------------

    def exchange(self, key: bytes, outgoing: list[Tensor], like: list[Tensor], opts: Any,
                 what: str) -> list[Tensor]:
        """Send entry i to process i; what all have sent to this one, flat, in order."""
        for to in self.others():
            self.put(to, key, outgoing[to])
        found = {self._rank: outgoing[self._rank].detach().reshape(-1)}
        for source in self.others():
            found[source] = self.take(source, key, like[source], opts, what)
        return [found[i] for i in range(self.size())]

    def collected(self, key: bytes, tensor: Tensor, like: list[Tensor], opts: Any, what: str
                  ) -> list[Tensor] | None:
        """All processes' tensors, flat, at the root."""
        root = opts.rootRank
        if self._rank != root:
            self.put(root, key, tensor)
            return None
        found = {root: tensor.detach().reshape(-1)}
        for source in self.others():
            found[source] = self.take(source, key, like[source], opts, what)
        return [found[i] for i in range(self.size())]

    def _all_reduce(self, key: bytes, tensor: Tensor, op: str, opts: Any) -> None:
        """All processes' tensors, reduced, for all."""
        flat = tensor.detach().reshape(-1)
        n = self.size()
        if n > 1:
            parts = list(flat.tensor_split(n))
            mine = self.exchange(key + b"r", parts, [parts[self._rank]] * n, opts, "allreduce")
            whole = reduced(mine, op)
            flat = flambeau.cat(self.exchange(key + b"g", [whole] * n, parts, opts, "allreduce"))
        if op == "AVG":
            flat = flat / n
        tensor.copy_(flat.view(tensor.shape))

    def run_allreduce(self, tensors: list[Tensor], opts: Any) -> Work:
        """All processes' tensors reduced, in place."""
        names = [checks.reduction(tensor, opts.reduceOp) for tensor in tensors]

        def run(key: bytes) -> None:
            for i, tensor in enumerate(tensors):
                self._all_reduce(key + b".%d" % i, tensor, names[i], opts)
        return self.start(tensors, run)

    run_allreduce_coalesced = run_allreduce

    def run_broadcast(self, tensors: list[Tensor], opts: Any) -> Work:
        """The tensors of one process for all."""
        root = self._root(opts, "broadcast")

        def run(key: bytes) -> None:
            for tensor in tensors:
                if self._rank == root:
                    for to in self.others():
                        self.put(to, key, tensor)
                else:
                    found = self.take(root, key, tensor, opts, "broadcast")
                    tensor.copy_(checks.fitting(found, tensor, "broadcast"))
        return self.start(tensors, run)

    def run_reduce(self, tensors: list[Tensor], opts: Any) -> Work:
        """All processes' tensors reduced, for one."""
        self._root(opts, "reduce")
        names = [checks.reduction(tensor, opts.reduceOp) for tensor in tensors]

        def run(key: bytes) -> None:
            for tensor, name in zip(tensors, names):
                found = self.collected(key, tensor, [tensor] * self.size(), opts, "reduce")
                if found is not None:
                    self._keep_reduced(tensor, found, name, "reduce")
        return self.start(tensors, run)

    def _keep_reduced(self, tensor: Tensor, parts: list[Tensor], name: str, what: str) -> None:
        total = reduced(parts, name)
        self._keep([tensor], [total / self.size() if name == "AVG" else total], what)

    def _keep(self, outputs: list[Tensor], found: list[Tensor], what: str) -> None:
        for output, value in zip(outputs, found):
            output.copy_(checks.fitting(value, output, what))

    def run_allgather(self, output_tensors: list[list[Tensor]], input_tensors: list[Tensor],
                      opts: Any) -> Work:
        """All processes' tensors, for all."""
        for outputs, tensor in zip(output_tensors, input_tensors):
            checks.outputs(outputs, tensor, self.size(), "allgather")

        def run(key: bytes) -> None:
            for i, (outputs, tensor) in enumerate(zip(output_tensors, input_tensors)):
                self._keep(outputs, self.exchange(key + b".%d" % i, [tensor] * self.size(),
                                                  outputs, opts, "allgather"), "allgather")
        return self.start(output_tensors, run)

    def run_allgather_coalesced(self, output_lists: list[list[Tensor]], input_list: list[Tensor],
                                opts: Any) -> Work:
        """`allgather` of several tensors, whose outputs come process by process."""
        columns = [[outputs[i] for outputs in output_lists] for i in range(len(input_list))]
        return self.run_allgather(columns, input_list, opts)

    def run_allgather_base(self, output: Tensor, input: Tensor, opts: Any) -> Work:
        """All processes' tensors one after the other, for all."""
        return self.run_allgather_into_tensor_coalesced([output], [input], opts)

    def run_allgather_into_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                            opts: Any) -> Work:
        """`_allgather_base` of several tensors."""
        n = self.size()
        for output, tensor in zip(outputs, inputs):
            checks.whole(output, tensor, n, "allgather")

        def run(key: bytes) -> None:
            for i, (output, tensor) in enumerate(zip(outputs, inputs)):
                found = self.exchange(key + b".%d" % i, [tensor] * n, [tensor] * n, opts,
                                      "allgather")
                output.copy_(flambeau.cat(found).view(output.shape))
        return self.start(outputs, run)

    def run_gather(self, output_tensors: list[list[Tensor]], input_tensors: list[Tensor],
                   opts: Any) -> Work:
        """All processes' tensors, for one."""
        root = self._root(opts, "gather")
        outputs = list(output_tensors[0]) if output_tensors else []
        if self._rank == root:
            checks.outputs(outputs, input_tensors[0], self.size(), "gather")

        def run(key: bytes) -> None:
            found = self.collected(key, input_tensors[0], outputs, opts, "gather")
            if found is not None:
                self._keep(outputs, found, "gather")
        return self.start(outputs, run)

    def run_scatter(self, output_tensors: list[Tensor], input_tensors: list[list[Tensor]],
                    opts: Any) -> Work:
        """A tensor of one process for each."""
        root, output = self._root(opts, "scatter"), output_tensors[0]
        parts = list(input_tensors[0]) if input_tensors else []
        if self._rank == root:
            checks.parts(parts, output, self.size(), "scatter")

        def run(key: bytes) -> None:
            if self._rank == root:
                for to in self.others():
                    self.put(to, key, parts[to])
                found = parts[root].detach().reshape(-1)
            else:
                found = self.take(root, key, output, opts, "scatter")
            self._keep([output], [found], "scatter")
        return self.start(output_tensors, run)

    def run_reduce_scatter(self, output_tensors: list[Tensor], input_tensors: list[list[Tensor]],
                           opts: Any) -> Work:
        """All entries i of all processes reduced, for process i."""
        names = []
        for output, parts in zip(output_tensors, input_tensors):
            checks.outputs(parts, output, self.size(), "reduce_scatter")
            names.append(checks.reduction(output, opts.reduceOp))

        def run(key: bytes) -> None:
            for i, (output, parts) in enumerate(zip(output_tensors, input_tensors)):
                found = self.exchange(key + b".%d" % i, parts, [output] * self.size(), opts,
                                      "reduce_scatter")
                self._keep_reduced(output, found, names[i], "reduce_scatter")
        return self.start(output_tensors, run)

    def run_reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any) -> Work:
        """All processes' tensors reduced, part i for process i."""
        return self.run_reduce_scatter_tensor_coalesced([output], [input], opts)

    def run_reduce_scatter_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                            opts: Any) -> Work:
        """`_reduce_scatter_base` of several tensors."""
        for output, tensor in zip(outputs, inputs):
            checks.whole(tensor, output, self.size(), "reduce_scatter")
        parts = [[part.view(output.shape) for part in tensor.detach().reshape(self.size(), -1)]
                 for output, tensor in zip(outputs, inputs)]
        return self.run_reduce_scatter(outputs, parts, opts)

    def run_alltoall(self, output_tensors: list[Tensor], input_tensors: list[Tensor], opts: Any
                     ) -> Work:
        """Entry j of process i's outputs becomes entry i of process j's inputs."""
        for values in (output_tensors, input_tensors):
            if len(values) != self.size():
                raise RuntimeError("ProcessGroupGloo::alltoall: one tensor for each of the "
                                   f"{self.size()} processes is expected, got {len(values)}")
        checks.same_type(output_tensors, input_tensors[0])

        def run(key: bytes) -> None:
            found = self.exchange(key, list(input_tensors), output_tensors, opts, "alltoall")
            self._keep(output_tensors, found, "alltoall")
        return self.start(output_tensors, run)

    def run_alltoall_base(self, output: Tensor, input: Tensor, output_split_sizes: list[int],
                          input_split_sizes: list[int], opts: Any) -> Work:
        """`alltoall` of parts of one tensor."""
        return self.run_alltoall(checks.split(output, output_split_sizes, self.size()),
                                 checks.split(input, input_split_sizes, self.size()), opts)

    def run_barrier(self, opts: Any) -> Work:
        """Wait for all processes."""
        empty = [flambeau.empty(0)] * self.size()
        return self.start([], lambda key: self.exchange(key, empty, empty, opts, "barrier"))

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False
                          ) -> None:
        """`barrier` that says who has not come."""
        seconds = (timeout or self.options._timeout).total_seconds()
        empty = flambeau.empty(0)

        def run(key: bytes) -> None:
            if self._rank:
                self.put(0, key, empty)
                self.peers.receive([self.ranks[0]], key + b"go", seconds, "monitored barrier")
                return
            missing = self._missing(key, seconds, wait_all_ranks)
            if missing:
                raise RuntimeError(f"Rank {', '.join(map(str, missing))} failed to pass "
                                   f"monitoredBarrier in {round(seconds * 1000)} ms")
            for to in range(1, self.size()):
                self.put(to, key + b"go", empty)
        self.start([], run).wait()

    def _missing(self, key: bytes, seconds: float, all_ranks: bool) -> list[int]:
        """Those from whom nothing has come in time: the first, or all."""
        missing: list[int] = []
        for source in range(1, self.size()):
            try:
                self.peers.receive([self.ranks[source]], key, seconds, "monitored barrier")
            except RuntimeError:
                missing.append(source)
                if not all_ranks:
                    break
        return missing

    def _root(self, opts: Any, call: str) -> int:
        root = opts.rootRank
        if not 0 <= root < self.size():
            raise RuntimeError(f"ProcessGroupGloo::{call}: invalid root rank: {root}")
        return root


def _profiled(name: str, run: Callable[[bytes], None], key: bytes) -> None:
    with flambeau.autograd.profiler.record_function(name):
        run(key)


ProcessGroupGloo.__module__ = "torch.distributed.distributed_c10d"
