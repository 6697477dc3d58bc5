"""`ProcessGroupGloo`: collectives made of messages over TCP.

A collective runs in a thread of its group, in the order of the calls; `Work` waits for it. What
is reduced is cut into a part for each process, which adds up that part of all, in the order of
the ranks: so all processes get the same bits.
"""
from __future__ import annotations

import contextlib
import functools
import itertools
import queue
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.source_locations import Place
from flambeau.distributed._c10d import checks
from flambeau.distributed._c10d.backends import agreement
from flambeau.distributed._c10d.backends.agreement import Call
from flambeau.distributed._c10d.backends.backend import Options
from flambeau.distributed._c10d.backends.checked import CheckedBackend
from flambeau.distributed._c10d.stores import Store
from flambeau.distributed._c10d.transport.connections import Peers
from flambeau.distributed._c10d.transport.messages import (
    as_bytes,
    of_bytes,
    receive_message,
    send_message,
)
from flambeau.distributed._c10d.work import Work
from flambeau.distributed.constants import default_pg_timeout

_ALONE = ("monitored_barrier",)         # whoever comes to it is there; it is not compared
comm_name: ContextVar[str | None] = ContextVar("comm_name", default=None)


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


_Interface = Device


class ProcessGroupGloo(CheckedBackend):
    """Collectives over TCP, of processes that find each other through a store."""

    Device, _Options = Device, GlooOptions
    Options: Any = GlooOptions
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
        self._running = self.finished = 0           # the number of a collective
        self._failed = ""                           # how a collective has timed out
        self.peers.groups[name] = self

    def name(self) -> str:
        """gloo"""
        return "gloo"

    @staticmethod
    def create_device(hostname: str = "", interface: str = "", lazy_init: bool | None = None
                      ) -> _Interface:
        """The network interface of that name or address."""
        return Device(hostname, interface)

    @staticmethod
    def create_default_device(lazy_init: bool | None = None) -> _Interface:
        """The network interface that reaches the store."""
        return Device()

    # ---- running collectives --------------------------------------------------------------------

    def start(self, call: Call, tensors: Any, run: Callable[[bytes], None], opts: Any) -> Work:
        """Run a collective, after those that were started before; `run` gets its key."""
        name = comm_name.get()
        if name is not None:
            run = functools.partial(_profiled, name, run)
        count, place = self.begin(), Place()
        key = f"{self.group_name}:{count}".encode()
        if self.size() == 1:
            with flambeau.no_grad():
                run(key)
            return Work(tensors)
        seconds = self._timeout_of(opts).total_seconds()

        def agree_and_run(key: bytes) -> None:
            self._running = count
            if call.name in _ALONE:
                run(key)
            else:
                with self._failing_once(call, seconds):
                    self._agree(key, call, count, place, seconds)
                    run(key)
            self.finished = count
        work = Work(tensors, done=False)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._calls.put((work, agree_and_run, key))
        return work

    @contextlib.contextmanager
    def _failing_once(self, call: Call, seconds: float) -> Iterator[None]:
        """Fail at once if a collective has timed out before: this one would most likely, too."""
        if self._failed:
            raise RuntimeError(f"{call.name}: the process group has failed before: {self._failed}")
        begun = time.monotonic()
        try:
            yield
        except RuntimeError as error:
            if time.monotonic() - begun >= seconds:
                self._failed = str(error)
            raise

    def _agree(self, key: bytes, call: Call, number: int, place: Place, seconds: float) -> None:
        """Make sure that all processes call the same."""
        mine = agreement.code(call, number).to_bytes(8, "big")
        if all(theirs == mine for theirs in self._told(key + b"?", mine, call, seconds)):
            return
        words = agreement.in_words(call, number, place)
        found = self._told(key + b"??", words, call, seconds)
        found.insert(self._rank, words)
        agreement.check(found, self.ranks)

    def _told(self, key: bytes, mine: bytes, call: Call, seconds: float) -> list[bytes]:
        """What the others say, in order, when this process says `mine`."""
        others = [rank for i, rank in enumerate(self.ranks) if i != self._rank]
        for other in others:
            self.peers.send(other, key, mine, seconds)
        found = []
        for other in others:
            try:
                found.append(bytes(self.peers.receive([other], key, seconds, call.name,
                                                      self._refusal)[1]))
            except RuntimeError as error:
                if self._refusal():
                    raise
                raise type(error)(f"{error}: rank {other} has not come to {call}") from None
        return found

    def _refusal(self) -> str:
        """Why the collective that runs does not come about."""
        return self.refusal(self._running)

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
        self.warn_of_notices()
        self._calls.put(None)
        self._sends.put(None)
        if self._own_peers:
            self.peers.close()

    # ---- messages -------------------------------------------------------------------------------

    def put(self, to: int, key: bytes, tensor: Tensor) -> None:
        """Send a tensor to a process of the group."""
        self.peers.send(self.ranks[to], key, as_bytes(tensor),
                        self.options._timeout.total_seconds())

    def take(self, source: int, key: bytes, like: Tensor, opts: Any, what: str) -> Tensor:
        """The tensor that a process of the group has sent."""
        seconds = self._timeout_of(opts).total_seconds()
        return of_bytes(self.peers.receive([self.ranks[source]], key, seconds, what,
                                           self._refusal)[1], like)

    def send(self, tensors: list[Tensor], dstRank: int, tag: int = 0) -> Work:
        """Send a tensor to another process."""
        return self.message("send", tensors, lambda: send_message(self, tensors, dstRank, tag))

    def recv(self, tensors: list[Tensor], srcRank: int, tag: int = 0) -> Work:
        """Receive a tensor from another process."""
        return self.message("recv", tensors, lambda: receive_message(self, tensors, [srcRank], tag))

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        """Receive a tensor from any process."""
        return self.message("recvAnySource", tensors, lambda: receive_message(
            self, tensors, self.others(), tag))

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
        if self.size() > 1:
            self._compare_parts(key, outputs, inputs, opts)
        found = self.exchange(key, list(inputs), outputs, opts, "alltoall")
        self._keep(outputs, found, "alltoall")

    def _compare_parts(self, key: bytes, outputs: list[Tensor], inputs: list[Tensor], opts: Any
                       ) -> None:
        """Raise in all processes if one sends more or less than another expects."""
        n = self.size()
        mine = struct.pack(f"!{2 * n}Q", *(t.numel() for t in (*inputs, *outputs)))
        seconds = self._timeout_of(opts).total_seconds()
        found = self._told(key + b"sizes", mine, Call("alltoall"), seconds)
        found.insert(self._rank, mine)
        sizes = [struct.unpack(f"!{2 * n}Q", data) for data in found]
        for source, to in itertools.product(range(n), repeat=2):
            checks.part(sizes[source][to], self.ranks[source], sizes[to][n + source],
                        self.ranks[to])

    def move_barrier(self, key: bytes, opts: Any) -> None:
        """Wait for all processes."""
        empty = [flambeau.empty(0)] * self.size()
        self.exchange(key, empty, empty, opts, "barrier")

    def answer(self) -> bytes:
        """Nothing: members that wait name the one that they wait for."""
        return b""

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False
                          ) -> None:
        """`barrier` that says who has not come."""
        if isinstance(timeout, (int, float)):
            timeout = timedelta(seconds=timeout)
        seconds = (self.options._timeout if timeout is None else timeout).total_seconds()
        empty = flambeau.empty(0)

        def run(key: bytes) -> None:
            if self._rank:
                self.put(0, key, empty)
                try:
                    self.peers.receive([self.ranks[0]], key + b"go", seconds, "monitoredBarrier")
                except RuntimeError as error:
                    raise RuntimeError(f"Rank {self._rank} successfully reached monitoredBarrier, "
                                       "but received errors while waiting for send/recv from rank "
                                       f"0: {error}") from error
                return
            if not seconds and self.size() > 1:
                raise RuntimeError("Rank 0 timed out in monitoredBarrier after 0 ms")
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
                self.peers.receive([self.ranks[source]], key, seconds, "monitoredBarrier")
            except RuntimeError:
                missing.append(source)
                if not all_ranks:
                    break
        return missing


def _profiled(name: str, run: Callable[[bytes], None], key: bytes) -> None:
    with flambeau.autograd.profiler.record_function(name):
        run(key)


ProcessGroupGloo.__module__ = "torch.distributed.distributed_c10d"
