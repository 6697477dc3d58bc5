"""Workers of one machine: started, watched, ended."""
from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from flambeau.distributed.elastic.multiprocessing.errors import ProcessFailure, record
from flambeau.distributed.elastic.multiprocessing.logs import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    Std,
    to_map,
)
from flambeau.distributed.elastic.multiprocessing.redirects import redirect_stderr, redirect_stdout
from flambeau.distributed.elastic.multiprocessing.subprocess_handler import (
    SubprocessHandler,
    get_subprocess_handler,
)
from flambeau.distributed.elastic.multiprocessing.tail_log import TailLog
from flambeau.distributed.elastic.utils.logging import get_logger
from flambeau.numa.binding import NumaOptions, _maybe_wrap_with_numa_binding

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext",
           "RunProcsResult", "SignalException", "Std", "SubprocessContext", "get_std_cm", "to_map"]

IS_WINDOWS, IS_MACOS = sys.platform == "win32", sys.platform == "darwin"
logger = get_logger(__name__)


class SignalException(Exception):
    """The agent was sent a signal, `sigval`, that is to end it."""

    def __init__(self, msg: str, sigval: signal.Signals):
        super().__init__(msg)
        self.sigval = sigval


_held: list[list[int]] = []             # signals that have come inside `signals_held`


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """A signal that comes inside raises at the end: what is started inside is known by then."""
    _held.append([])
    try:
        yield
    finally:
        came = _held.pop()
        if came:
            _terminate_process_handler(came[0], None)


def _terminate_process_handler(signum: int, frame: Any) -> None:
    if _held:
        _held[-1].append(signum)
        return
    sigval = signal.Signals(signum)
    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)


def _get_default_signal() -> signal.Signals:
    return signal.SIGTERM


def _get_kill_signal() -> signal.Signals:
    return signal.SIGKILL


@dataclass
class RunProcsResult:
    """How workers have ended, by local rank: what functions gave, failures, and log files."""

    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Has any failed?"""
        return len(self.failures) > 0


def get_std_cm(std_rd: str, redirect_fn: Callable[[str], Any]) -> Any:
    """A context in which output goes to a file; one without effect if no file is given."""
    return nullcontext() if not std_rd else redirect_fn(std_rd)


def _validate_full_rank(d: dict[int, Any], nprocs: int, what: str) -> None:
    if set(d) != set(range(nprocs)):
        raise RuntimeError(f"{what}, local rank mapping mismatch, expected: {set(range(nprocs))}, "
                           f"actual: {set(d)}")


class PContext(ABC):
    """Workers: `start()` starts them, `wait()` waits until all have ended or one has failed,
    `close()` ends them."""

    def __init__(self, name: str, entrypoint: Callable[..., Any] | str,
                 args: dict[int, tuple[Any, ...]], envs: dict[int, dict[str, str]],
                 logs_specs: LogsSpecs, log_line_prefixes: dict[int, str] | None = None,
                 duplicate_stdout_filters: list[str] | None = None,
                 duplicate_stderr_filters: list[str] | None = None):
        self.name, self.entrypoint, self.args, self.envs = name, entrypoint, args, envs
        _validate_full_rank(args, len(args), "args")
        _validate_full_rank(envs, len(args), "envs")
        logs = logs_specs.reify(envs)
        self.stdouts, self.stderrs, self.error_files = logs.stdouts, logs.stderrs, logs.error_files
        self.nprocs = len(args)
        self.filtered_stdout = self.filtered_stderr = None
        self._tail_logs = [
            TailLog(name, logs.tee_stdouts, sys.stdout, log_line_prefixes),
            TailLog(name, logs.tee_stderrs, sys.stderr, log_line_prefixes)]
        if duplicate_stdout_filters:
            self.filtered_stdout = self._tail_filtered(
                logs.filtered_stdout, logs.tee_stdouts, log_line_prefixes,
                duplicate_stdout_filters)
        if duplicate_stderr_filters:
            self.filtered_stderr = self._tail_filtered(
                logs.filtered_stderr, logs.tee_stderrs, log_line_prefixes,
                duplicate_stderr_filters)

    def _tail_filtered(self, path: str, log_files: dict[int, str],
                       prefixes: dict[int, str] | None, wanted: list[str]) -> Any:
        """Have the lines that contain one of `wanted` written to a file."""
        file = open(path, "w", errors="replace", buffering=1)    # noqa: SIM115
        self._tail_logs.append(TailLog(self.name, log_files, file, prefixes, log_line_filter=(
            lambda line: any(text in line for text in wanted))))
        return file

    def start(self) -> None:
        """Start the workers; from now on signals that would end this process raise
        `SignalException`, so that it ends the workers first."""
        names = os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT")
        if threading.current_thread() is threading.main_thread():
            for name in filter(None, map(str.strip, names.split(","))):
                try:
                    signal.signal(getattr(signal, name), _terminate_process_handler)
                except (AttributeError, ValueError, OSError) as error:
                    logger.warning("Failed to register signal handler for %s: %s", name, error)
        else:
            logger.warning("Failed to register signal handlers since torchelastic is running on a "
                           "child thread. This could lead to orphaned worker processes if the "
                           "torchrun is terminated.")
        self._start()
        for tail in self._tail_logs:
            tail.start()

    @abstractmethod
    def _start(self) -> None:
        """Start the workers."""

    @abstractmethod
    def _poll(self) -> RunProcsResult | None:
        """The result, if all have ended or one has failed."""

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """Look every `period` seconds; None if the workers still run after `timeout`, 0 looks
        once, -1 waits for ever. Ends the others if one has failed."""
        if timeout == 0:
            return self._poll()
        until = time.monotonic() + timeout if timeout > 0 else None
        while until is None or time.monotonic() < until:
            found = self._poll()
            if found:
                return found
            time.sleep(period)
        return None

    @abstractmethod
    def pids(self) -> dict[int, int]:
        """Process ids by local rank."""

    @abstractmethod
    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        """End the workers."""

    def close(self, death_sig: signal.Signals | None = None, timeout: int = 30) -> None:
        """End the workers: `death_sig`, then SIGKILL to those that run `timeout` seconds later.
        Shows what is left of their logs."""
        self._close(death_sig or _get_default_signal(), timeout)
        for tail in self._tail_logs:
            tail.stop()
        for file in (self.filtered_stdout, self.filtered_stderr):
            if file is not None:
                file.close()


# Functions ----------------------------------------------------------------------------------


def _wrap(local_rank: int, fn: Callable[..., Any], args: dict[int, tuple[Any, ...]],
          envs: dict[int, dict[str, str]], stdout_redirects: dict[int, str],
          stderr_redirects: dict[int, str], ret_vals: dict[int, Any],
          queue_finished_reading_event: Any, numa_options: NumaOptions | None) -> None:
    """What a worker runs: the function, in its environment; sends the value, and waits until it
    is read, since what it refers to may live in this process."""
    os.environ.update(envs[local_rank])
    fn = _maybe_wrap_with_numa_binding(fn, gpu_index=local_rank, numa_options=numa_options)
    with get_std_cm(stdout_redirects[local_rank], redirect_stdout), \
            get_std_cm(stderr_redirects[local_rank], redirect_stderr):
        value = record(fn)(*args[local_rank])
    ret_vals[local_rank].put(value)
    queue_finished_reading_event.wait()


class MultiprocessContext(PContext):
    """Workers that run a function."""

    def __init__(self, name: str, entrypoint: Callable[..., Any],
                 args: dict[int, tuple[Any, ...]], envs: dict[int, dict[str, str]],
                 start_method: str, logs_specs: LogsSpecs,
                 log_line_prefixes: dict[int, str] | None = None,
                 numa_options: NumaOptions | None = None,
                 duplicate_stdout_filters: list[str] | None = None,
                 duplicate_stderr_filters: list[str] | None = None):
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes,
                         duplicate_stdout_filters, duplicate_stderr_filters)
        context = multiprocessing.get_context(start_method)
        self.start_method, self._numa_options = start_method, numa_options
        self._ret_vals: dict[int, Any] = {rank: context.SimpleQueue() for rank in args}
        self._return_values: dict[int, Any] = {}
        self._pc: Any = None
        self._worker_finished_event = context.Event()

    def _start(self) -> None:
        from flambeau.multiprocessing import start_processes
        self._pc = start_processes(
            _wrap, args=(self.entrypoint, self.args, self.envs, self.stdouts, self.stderrs,
                         self._ret_vals, self._worker_finished_event, self._numa_options),
            nprocs=self.nprocs, join=False, daemon=False, start_method=self.start_method)

    def _is_done(self) -> bool:
        return len(self._return_values) == self.nprocs

    def _poll(self) -> RunProcsResult | None:
        from flambeau.multiprocessing import ProcessExitedException, ProcessRaisedException
        try:
            # raises if a worker has failed, which ends the others
            self._pc.join(0)
            for rank, queue in self._ret_vals.items():
                if rank not in self._return_values and not queue.empty():
                    self._return_values[rank] = queue.get()
            if not self._is_done():
                return None
            self._worker_finished_event.set()
            while not self._pc.join():
                pass
            return RunProcsResult(return_values=self._return_values, stdouts=self.stdouts,
                                  stderrs=self.stderrs)
        except (ProcessRaisedException, ProcessExitedException) as error:
            rank = error.error_index
            failed = self._pc.processes[rank]
            name = getattr(self.entrypoint, "__qualname__", self.entrypoint)
            logger.exception("failed (exitcode: %s) local_rank: %s (pid: %s) of fn: %s "
                             "(start_method: %s)", failed.exitcode, rank, error.error_pid, name,
                             self.start_method)
            self.close()
            failure = ProcessFailure(rank, error.error_pid, failed.exitcode,
                                     self.error_files[rank])
            return RunProcsResult(failures={rank: failure}, stdouts=self.stdouts,
                                  stderrs=self.stderrs)

    def pids(self) -> dict[int, int]:
        """Process ids by local rank."""
        return dict(enumerate(self._pc.pids()))

    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        if self._pc is None:
            return
        running = [process for process in self._pc.processes if process.is_alive()]
        for process in running:
            logger.warning("Closing process %s via signal %s", process.pid, death_sig.name)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, death_sig)
        until = time.monotonic() + timeout
        for process in running:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                _log_kill(process.pid, death_sig)
                process.kill()
        for process in self._pc.processes:
            process.join()


def _log_kill(pid: int, death_sig: signal.Signals) -> None:
    logger.warning("Unable to shutdown process %s via %s, forcefully exiting via %s", pid,
                   death_sig, _get_kill_signal())


# Programs -----------------------------------------------------------------------------------


class SubprocessContext(PContext):
    """Workers that are programs."""

    def __init__(self, name: str, entrypoint: str, args: dict[int, tuple[Any, ...]],
                 envs: dict[int, dict[str, str]], logs_specs: LogsSpecs,
                 log_line_prefixes: dict[int, str] | None = None,
                 numa_options: NumaOptions | None = None,
                 duplicate_stdout_filters: list[str] | None = None,
                 duplicate_stderr_filters: list[str] | None = None):
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes,
                         duplicate_stdout_filters, duplicate_stderr_filters)
        self._running_local_ranks = set(range(self.nprocs))
        self._failures: dict[int, ProcessFailure] = {}
        self.subprocess_handlers: dict[int, SubprocessHandler] = {}
        self._numa_options = numa_options

    def _start(self) -> None:
        if self.subprocess_handlers:
            raise ValueError("The subprocess handlers already initialized. Most likely the start "
                             "method got called twice.")
        for rank in range(self.nprocs):
            self.subprocess_handlers[rank] = get_subprocess_handler(
                entrypoint=self.entrypoint, args=self.args[rank],       # type: ignore[arg-type]
                env=self.envs[rank], stdout=self.stdouts[rank], stderr=self.stderrs[rank],
                local_rank_id=rank, numa_options=self._numa_options)

    def _capture_process_failures(self, done_local_ranks: set[int]) -> None:
        for rank in self._running_local_ranks:
            handler = self.subprocess_handlers[rank]
            code = handler.proc.poll()
            if code is None:
                continue
            done_local_ranks.add(rank)
            if code != 0:
                self._failures[rank] = ProcessFailure(rank, handler.proc.pid, code,
                                                      self.error_files[rank])
        self._running_local_ranks.difference_update(done_local_ranks)

    def _poll(self) -> RunProcsResult | None:
        done: set[int] = set()
        self._capture_process_failures(done)
        if self._running_local_ranks and not self._failures:
            return None
        self.close()                # ends the others if one has failed
        self._capture_process_failures(done)
        result = RunProcsResult(failures=self._failures, stdouts=self.stdouts,
                                stderrs=self.stderrs)
        if result.is_failed():
            first = min(self._failures.values(), key=lambda failure: failure.timestamp)
            logger.error("failed (exitcode: %s) local_rank: %s (pid: %s) of binary: %s",
                         first.exitcode, first.local_rank, first.pid, self.entrypoint)
        else:
            result.return_values = dict.fromkeys(range(self.nprocs))
        return result

    def pids(self) -> dict[int, int]:
        """Process ids by local rank."""
        return {rank: handler.proc.pid for rank, handler in self.subprocess_handlers.items()}

    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        running = [handler for handler in self.subprocess_handlers.values()
                   if handler.proc.poll() is None]
        for handler in running:
            logger.warning("Sending process %s closing signal %s", handler.proc.pid,
                           death_sig.name)
            with contextlib.suppress(ProcessLookupError):
                handler.close(death_sig=death_sig)
        until = time.monotonic() + timeout
        for handler in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                handler.proc.wait(max(0.0, until - time.monotonic()))
            if handler.proc.poll() is None:
                _log_kill(handler.proc.pid, death_sig)
                with contextlib.suppress(ProcessLookupError):
                    handler.close(death_sig=_get_kill_signal())
                handler.proc.wait()
