"""`ProcessGroup`: processes that take part in collectives together.

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
from flambeau.distributed._transport import Peers
from flambeau.distributed.stores import Store
from flambeau.futures import Future


class Work:
    """A collective that has been started: done already, or to be waited for."""

    def __init__(self, tensors: Any, done: bool = True):
        self._tensors = tensors
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._future: Future = Future()
        self.source = -1
        if done:
            self._finish(None)

    def _finish(self, error: BaseException | None) -> None:
        self._error = error
        if error is None:
            self._future.set_result(self._tensors)
        else:
            self._future.set_exception(error)
        self._done.set()

    def is_completed(self) -> bool:
        """Is it done?"""
        return self._done.is_set()

    def is_success(self) -> bool:
        """Is it done, without an error?"""
        return self._done.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        """Why it has failed; None if it has not."""
        return self._error

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done; raises what it has failed with."""
        seconds = timeout.total_seconds() if timeout else None
        if not self._done.wait(seconds):
            raise RuntimeError(f"Timed out waiting {round((seconds or 0) * 1000)}ms for operation "
                               "to complete")
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """Wait until it is done."""
        self.wait()

    def result(self) -> Any:
        """The tensors that it wrote."""
        self.wait()
        return self._tensors

    def source_rank(self) -> int:
        """Who sent what was received."""
        return self.source

    def get_future(self) -> Future:
        """A future of the tensors that it writes."""
        return self._future


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


# ---- groups -------------------------------------------------------------------------------------

class ProcessGroup:
    """Processes that take part in collectives together: the `ranks` of the default group."""

    def __init__(self, backend: str, store: Store | None, name: str, timeout: timedelta,
                 rank: int = 0, ranks: list[int] | None = None, peers: Peers | None = None):
        self.backend, self.store, self.group_name, self.timeout = backend, store, name, timeout
        self.group_desc = "default_pg" if name == "0" else "undefined"
        self.ranks = [0] if ranks is None else ranks
        self.global_rank, self.peers = rank, peers
        self._rank = self.ranks.index(rank)
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._sends: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._sender: threading.Thread | None = None
        self._count = 0

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return len(self.ranks)

    def name(self) -> str:
        """The name of the backend."""
        return self.backend

    # ---- running collectives --------------------------------------------------------------------

    def start(self, tensors: Any, run: Callable[[bytes], None], alone: bool = False) -> Work:
        """Run a collective, after those that were started before; `run` gets its key."""
        name = comm_name.get()
        if name is not None:
            run = functools.partial(_profiled, name, run)
        self._count += 1
        key = f"{self.group_name}:{self._count}".encode()
        if self.size() == 1 or alone:
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

    def in_background(self, run: Callable[[], None]) -> None:
        """Run something in a thread of its own, before what is started there later."""
        if self._sender is None:
            self._sender = threading.Thread(target=self._send, daemon=True)
            self._sender.start()
        self._sends.put(run)

    def _send(self) -> None:
        while (run := self._sends.get()) is not None:
            run()

    def close(self) -> None:
        """End the group's threads."""
        self._calls.put(None)
        self._sends.put(None)

    # ---- messages -------------------------------------------------------------------------------

    def put(self, to: int, key: bytes, tensor: Tensor) -> None:
        """Send a tensor to a process of the group."""
        assert self.peers is not None
        self.peers.send(self.ranks[to], key, as_bytes(tensor))

    def take(self, source: int, key: bytes, like: Tensor, what: str) -> Tensor:
        """The tensor that a process of the group has sent."""
        assert self.peers is not None
        data = self.peers.receive([self.ranks[source]], key, self.timeout.total_seconds(), what)[1]
        return of_bytes(data, like)

    def others(self) -> list[int]:
        """The other processes, beginning with the next."""
        n = self.size()
        return [(self._rank + i) % n for i in range(1, n)]

    # ---- collectives ----------------------------------------------------------------------------

    def exchange(self, key: bytes, outgoing: list[Tensor], like: list[Tensor], what: str
                 ) -> list[Tensor]:
        """Send entry i to process i; what all have sent to this one, flat, in order."""
        for to in self.others():
            self.put(to, key, outgoing[to])
        found = {self._rank: outgoing[self._rank].detach().reshape(-1)}
        for source in self.others():
            found[source] = self.take(source, key, like[source], what)
        return [found[i] for i in range(self.size())]

    def run_allreduce(self, key: bytes, tensor: Tensor, op: str) -> None:
        """All processes' tensors, reduced, for all."""
        flat = tensor.detach().reshape(-1)
        n = self.size()
        if n > 1:
            parts = list(flat.tensor_split(n))
            mine = self.exchange(key + b"r", parts, [parts[self._rank]] * n, "allreduce")
            whole = reduced(mine, op)
            flat = flambeau.cat(self.exchange(key + b"g", [whole] * n, parts, "allreduce"))
        if op == "AVG":
            flat = flat / n
        tensor.copy_(flat.view(tensor.shape))

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> Work:
        """All processes' tensors reduced, in place."""
        op = getattr(getattr(opts, "reduceOp", opts), "name", "SUM")

        def run(key: bytes) -> None:
            for i, tensor in enumerate(tensors):
                self.run_allreduce(key + bytes([i]), tensor, op)
        return self.start(tensors, run)

    def broadcast(self, tensors: list[Tensor], opts: Any = None) -> Work:
        """The tensors of one process for all."""
        root = getattr(opts, "rootRank", opts) or 0

        def run(key: bytes) -> None:
            for tensor in tensors:
                if self._rank == root:
                    for to in self.others():
                        self.put(to, key, tensor)
                else:
                    found = self.take(root, key, tensor, "broadcast")
                    tensor.copy_(fitting(found, tensor, "broadcast"))
        return self.start(tensors, run)

    def barrier(self, opts: Any = None) -> Work:
        """Wait for all processes."""
        empty = flambeau.empty(0)

        def run(key: bytes) -> None:
            self.exchange(key, [empty] * self.size(), [empty] * self.size(), "barrier")
        return self.start([], run)

    def gathered(self, key: bytes, tensor: Tensor, like: list[Tensor], what: str) -> list[Tensor]:
        """All processes' tensors, flat."""
        return self.exchange(key, [tensor] * self.size(), like, what)


def _profiled(name: str, run: Callable[[bytes], None], key: bytes) -> None:
    with flambeau.autograd.profiler.record_function(name):
        run(key)


def fitting(found: Tensor, like: Tensor, call: str) -> Tensor:
    """What has arrived, in the shape of where it goes."""
    if found.numel() != like.numel():
        raise RuntimeError(f"ProcessGroupGloo::{call}: received {found.numel()} elements, but the "
                           f"tensor has {like.numel()}")
    return found.view(like.shape)


__all__ = ["ProcessGroup", "Work", "as_bytes", "fitting", "of_bytes", "reduced"]
