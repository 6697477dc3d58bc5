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
from flambeau.distributed._c10d.agreement import Call
from flambeau.distributed._c10d.backend import Options
from flambeau.distributed._c10d.checked import CheckedBackend
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


class ProcessGroupGloo(CheckedBackend):
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

    def start(self, call: Call, tensors: Any, run: Callable[[bytes], None], opts: Any) -> Work:
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

    def collected(self, key: bytes, tensor: Tensor, like: list[Tensor], root: int, opts: Any,
                  what: str) -> list[Tensor] | None:
        """All processes' tensors, flat, at the root."""
        if self._rank != root:
            self.put(root, key, tensor)
            return None
        found = {root: tensor.detach().reshape(-1)}
        for source in self.others():
            found[source] = self.take(source, key, like[source], opts, what)
        return [found[i] for i in range(self.size())]

    def move_allreduce(self, key: bytes, tensors: list[Tensor], names: list[str], opts: Any
                       ) -> None:
        """All processes' tensors reduced, in place."""
        for i, tensor in enumerate(tensors):
            self._all_reduce(key + b".%d" % i, tensor, names[i], opts)

    def _all_reduce(self, key: bytes, tensor: Tensor, op: str, opts: Any) -> None:
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

    def move_broadcast(self, key: bytes, tensors: list[Tensor], root: int, opts: Any) -> None:
        """The tensors of one process for all."""
        for tensor in tensors:
            if self._rank == root:
                for to in self.others():
                    self.put(to, key, tensor)
            else:
                self._keep([tensor], [self.take(root, key, tensor, opts, "broadcast")],
                           "broadcast")

    def move_reduce(self, key: bytes, tensors: list[Tensor], names: list[str], root: int,
                    opts: Any) -> None:
        """All processes' tensors reduced, for one."""
        for tensor, name in zip(tensors, names):
            found = self.collected(key, tensor, [tensor] * self.size(), root, opts, "reduce")
            if found is not None:
                self._keep_reduced(tensor, found, name, "reduce")

    def _keep_reduced(self, tensor: Tensor, parts: list[Tensor], name: str, what: str) -> None:
        total = reduced(parts, name)
        self._keep([tensor], [total / self.size() if name == "AVG" else total], what)

    def move_allgather(self, key: bytes, outputs: list[list[Tensor]], inputs: list[Tensor],
                       opts: Any) -> None:
        """All processes' tensors, for all."""
        for i, (own, tensor) in enumerate(zip(outputs, inputs)):
            self._keep(own, self.exchange(key + b".%d" % i, [tensor] * self.size(), own, opts,
                                          "allgather"), "allgather")

    def move_allgather_into_tensor(self, key: bytes, outputs: list[Tensor], inputs: list[Tensor],
                                   opts: Any) -> None:
        """All processes' tensors one after the other, for all."""
        n = self.size()
        for i, (output, tensor) in enumerate(zip(outputs, inputs)):
            found = self.exchange(key + b".%d" % i, [tensor] * n, [tensor] * n, opts, "allgather")
            output.copy_(flambeau.cat(found).view(output.shape))

    def move_gather(self, key: bytes, outputs: list[Tensor], tensor: Tensor, root: int, opts: Any
                    ) -> None:
        """All processes' tensors, for one."""
        found = self.collected(key, tensor, outputs, root, opts, "gather")
        if found is not None:
            self._keep(outputs, found, "gather")

    def move_scatter(self, key: bytes, output: Tensor, parts: list[Tensor], root: int, opts: Any
                     ) -> None:
        """A tensor of one process for each."""
        if self._rank == root:
            for to in self.others():
                self.put(to, key, parts[to])
            found = parts[root].detach().reshape(-1)
        else:
            found = self.take(root, key, output, opts, "scatter")
        self._keep([output], [found], "scatter")

    def move_reduce_scatter(self, key: bytes, outputs: list[Tensor], inputs: list[list[Tensor]],
                            names: list[str], opts: Any) -> None:
        """All entries i of all processes reduced, for process i."""
        for i, (output, parts) in enumerate(zip(outputs, inputs)):
            found = self.exchange(key + b".%d" % i, parts, [output] * self.size(), opts,
                                  "reduce_scatter")
            self._keep_reduced(output, found, names[i], "reduce_scatter")

    def move_alltoall(self, key: bytes, outputs: list[Tensor], inputs: list[Tensor], opts: Any
                      ) -> None:
        """Entry j of process i's outputs becomes entry i of process j's inputs."""
        found = self.exchange(key, list(inputs), outputs, opts, "alltoall")
        self._keep(outputs, found, "alltoall")

    def move_barrier(self, key: bytes, opts: Any) -> None:
        """Wait for all processes."""
        empty = [flambeau.empty(0)] * self.size()
        self.exchange(key, empty, empty, opts, "barrier")

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
        self.start(Call("monitored_barrier"), [], run, None).wait()

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


def _profiled(name: str, run: Callable[[bytes], None], key: bytes) -> None:
    with flambeau.autograd.profiler.record_function(name):
        run(key)


ProcessGroupGloo.__module__ = "torch.distributed.distributed_c10d"
