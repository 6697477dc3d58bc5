"""The worker processes of a loader, as the main process sees them."""

import _thread
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import connection as connections
from pathlib import Path
from typing import Any

from flambeau.utils.data._utils import transfer, worker

# how long a worker may take to stop, idle or loading, before it is ended; and then to end
_IDLE_SECONDS, _BUSY_SECONDS, _END_SECONDS = 5.0, 0.7, 0.4
_SLICE_SECONDS = 0.2                        # of a wait, after which Python looks for interrupts


class Worker:
    """A worker process, which it can be asked all that a process can, and the connection to it."""

    def __init__(self, context: Any, arguments: tuple[Any, ...]):
        self.connection, self._theirs = context.Pipe()
        self.active = True
        self.process = context.Process(
            target=worker.run, args=(self._theirs, *arguments), daemon=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["process"], name)

    def start(self) -> None:
        self.process.start()
        self._theirs.close()        # so that the worker's end of it shows as end of file

    def ask(self, request: str, number: int | None = None, index: Any = None) -> None:
        """Send a request; a worker that has died is noticed when its answer is waited for."""
        try:
            transfer.send(self.connection, (request, number, index))
        except (BrokenPipeError, ConnectionResetError):
            pass


@contextmanager
def held_interrupts(forks: bool) -> Iterator[None]:
    """Let Ctrl-C wait while processes start, so that none runs which nobody knows; one that is
    not forked notices by itself that nobody does."""
    global _before
    before = signal.getsignal(signal.SIGINT)
    if not forks or not callable(before) \
            or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda *args: came.append(args))
    _before = before
    try:
        yield
    finally:
        let_interrupts_in()
        if came:
            before(*came[0])


_before: Any = None             # what a Ctrl-C calls, while it waits


def let_interrupts_in() -> None:
    """Let Ctrl-C do again what it did before `held_interrupts`, also in a worker."""
    global _before
    if _before is not None:
        signal.signal(signal.SIGINT, _before)
        _before = None


worker.let_interrupts_in = let_interrupts_in


def interrupt_soon() -> None:
    """Interrupt the program once what runs now has ended: a `__del__` would swallow it."""
    threading.Timer(0.01, _thread.interrupt_main).start()


def wait(ready: list[Any], timeout: float | None) -> list[Any]:
    """Those connections that have something to receive, once one has. The wait is cut in slices:
    an exception set by another thread does not end a system call."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = _SLICE_SECONDS if end is None else min(_SLICE_SECONDS, end - time.monotonic())
        found = connections.wait(ready, timeout=max(left, 0.0))
        if found or (end is not None and time.monotonic() >= end):
            return found


def stop(workers: list[Worker], busy: set[Worker], now: bool = False) -> None:
    """Have the processes end, and take back the shared memory that they have sent in vain.

    Those which are `busy` loading get less time than others; with `now` all are ended at once.
    """
    started = [w for w in workers if w.process.pid is not None]
    try:
        if not now:
            for w in started:
                w.ask(worker.STOP)
            _await_end([w for w in started if w in busy], _BUSY_SECONDS)
            _await_end([w for w in started if w not in busy], _IDLE_SECONDS)
    finally:
        for w in started:
            w.process.terminate()
        _await_end(started, _END_SECONDS)
        for w in started:
            w.process.kill()                        # in case it does not listen to SIGTERM
        for w in started:
            w.process.join()
            w.connection.close()
            _drop_messages(w.process.pid)


def _await_end(workers: list[Worker], seconds: float) -> None:
    """Wait for processes to end, taking what they still send out of their way."""
    end = time.monotonic() + seconds
    open_ends: set[Any] = {w.connection for w in workers}
    running = {w.process.sentinel for w in workers}
    while running and (left := end - time.monotonic()) > 0:
        ready: Any
        for ready in connections.wait([*running, *open_ends], timeout=left):
            if ready in running:
                running.discard(ready)
                continue
            try:
                ready.recv_bytes()
            except (EOFError, OSError):
                open_ends.discard(ready)


def _drop_messages(pid: int) -> None:
    """Remove the files of messages that a process has sent and nobody has received."""
    for path in Path(transfer.shared_folder() or tempfile.gettempdir()).glob(
            f"{transfer.prefix(pid)}*"):
        path.unlink(missing_ok=True)
