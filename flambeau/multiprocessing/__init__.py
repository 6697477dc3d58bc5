"""Python's `multiprocessing`, whose processes can send tensors to each other.

A tensor is sent as its values: what one process writes to it later the other does not see.
"""
from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *
from multiprocessing import connection
from typing import Any

_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """What `set_sharing_strategy` was told."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Remembered; values travel through a pipe either way."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}")
    _strategy = new_strategy


class ProcessException(Exception):
    """A spawned process has failed."""

    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """It raised an exception."""


class ProcessExitedException(ProcessException):
    """It was ended by a signal or by an exit code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _run(function: Any, number: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        function(number, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import sys
        import traceback
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that run; `join()` waits for them and raises what one of them raised."""

    def __init__(self, processes: list[Any], errors: list[Any]):
        self.processes, self.errors = processes, errors

    def pids(self) -> list[int]:
        return [p.pid for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all have ended (True), or one has failed (raises, and ends the others)."""
        connection.wait([p.sentinel for p in self.processes if p.exitcode != 0], timeout=timeout)
        failed = [i for i, p in enumerate(self.processes) if p.exitcode not in (None, 0)]
        if not failed:
            return all(p.exitcode == 0 for p in self.processes)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(grace_period)
        number = failed[0]
        process = self.processes[number]
        if self.errors[number].empty():
            how = f"signal {-process.exitcode}" if process.exitcode < 0 \
                else f"exit code {process.exitcode}"
            raise ProcessExitedException(f"process {number} terminated with {how}", number,
                                         process.pid, process.exitcode)
        text = self.errors[number].get()
        raise ProcessRaisedException(f"\n\n-- Process {number} terminated with the following "
                                     f"error:\n{text}", number, process.pid)


SpawnContext = ProcessContext


def start_processes(fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
                    daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes, i = 0, 1, ….

    With `join` wait for all of them, and raise what one raises; else return a `ProcessContext`.
    """
    context: Any = _python.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, i, args, queue), daemon=daemon)
        process.start()
        processes.append(process)
        errors.append(queue)
    running = ProcessContext(processes, errors)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
          daemon: bool = False, start_method: str = "spawn") -> ProcessContext | None:
    """`start_processes` in fresh interpreters."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException",
           "ProcessRaisedException", "get_all_sharing_strategies", "get_sharing_strategy",
           "set_sharing_strategy", "spawn", "start_processes", *_python.__all__]
