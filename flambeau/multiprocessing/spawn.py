"""Running one function in several processes, and learning of the first that fails."""
from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import traceback
import warnings
from multiprocessing import connection
from typing import Any


class ProcessException(Exception):
    """A process has failed: `error_index` is its number, `error_pid` its id."""

    def __init__(self, msg: str, error_index: int, error_pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """It raised an exception."""


class ProcessExitedException(ProcessException):
    """It was ended by a signal or by an exit code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code,
                            self.signal_name)


def _run(function: Any, number: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        function(number, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that run; `join()` waits for them and raises what one of them raised."""

    def __init__(self, processes: list[Any], error_files: list[Any]):
        self.processes, self.error_files = processes, error_files
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one or more have ended: True once all have, and well.

        If one has failed, the others are ended, after `grace_period` seconds, and its error is
        raised.
        """
        for sentinel in connection.wait(self.sentinels, timeout) if self.sentinels else ():
            number = self.sentinels.pop(sentinel)
            process = self.processes[number]
            process.join()
            if process.exitcode != 0:
                self._end_all(grace_period)
                raise self._error(number)
        return not self.sentinels

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait(grace_period)
        for end, seconds in (("terminate", 30 if grace_period is None else grace_period),
                             ("kill", None)):
            for process in self.processes:
                if process.is_alive():
                    getattr(process, end)()
            self._wait(seconds)

    def _wait(self, seconds: float | None) -> None:
        until = None if seconds is None else time.monotonic() + seconds
        for process in self.processes:
            process.join(None if until is None else max(0.0, until - time.monotonic()))

    def _error(self, number: int) -> ProcessException:
        process, errors = self.processes[number], self.error_files[number]
        code = process.exitcode
        if not errors.empty():
            return ProcessRaisedException(
                f"\n\n-- Process {number} terminated with the following error:\n{errors.get()}",
                number, process.pid)
        if code >= 0:
            return ProcessExitedException(
                f"process {number} terminated with exit code {code}", number, process.pid, code)
        known = {s.value: s.name for s in signal.Signals}
        name = known.get(-code, f"<Unknown signal {-code}>")
        return ProcessExitedException(
            f"process {number} terminated with signal {name}", number, process.pid, code, name)


class SpawnContext(ProcessContext):
    """What `spawn(…, join=False)` gives."""


def start_processes(fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
                    daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes, i = 0, 1, ….

    With `join` wait for all of them, and raise what one raises; else return a `ProcessContext`.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, i, args, queue), daemon=daemon)
        process.start()
        processes.append(process)
        errors.append(queue)
    running = (SpawnContext if start_method == "spawn" else ProcessContext)(processes, errors)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
          daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """`start_processes` in fresh interpreters."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a "
            "different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning, stacklevel=2)
    return start_processes(fn, args, nprocs, join, daemon, "spawn")


__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
           "SpawnContext", "spawn", "start_processes"]
