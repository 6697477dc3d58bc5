"""Timers through a named pipe: workers need only its path, which the environment can hold."""
from __future__ import annotations

import io
import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from flambeau.distributed.elastic.timer.api import KeepsTimers, TimerClient, TimerRequest
from flambeau.distributed.elastic.timer.debug_info_logging import log_debug_info_for_expired_timers
from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["FileTimerClient", "FileTimerRequest", "FileTimerServer"]

logger = get_logger(__name__)


class FileTimerRequest(TimerRequest):
    """A request that names the signal which ends the process; 0 ends none."""

    __slots__ = ["signal", "version"]

    def __init__(self, worker_pid: int, scope_id: str, expiration_time: float, signal: int = 0):
        super().__init__(worker_pid, scope_id, expiration_time)
        self.version, self.signal = 1, signal

    @property
    def worker_pid(self) -> int:
        """The process."""
        return self.worker_id

    def _key(self) -> tuple[Any, ...]:
        return self.version, *super()._key(), self.signal

    def to_json(self) -> str:
        """As a line of JSON.

        >>> FileTimerRequest(7, "step", 12.0, 9).to_json()
        '{"version": 1, "pid": 7, "scope_id": "step", "expiration_time": 12.0, "signal": 9}'
        """
        return json.dumps({"version": self.version, "pid": self.worker_pid,
                           "scope_id": self.scope_id, "expiration_time": self.expiration_time,
                           "signal": self.signal})


class FileTimerClient(TimerClient):
    """Asks the server that reads a pipe, in the name of this process."""

    def __init__(self, file_path: str, signal: int = signal.SIGKILL):
        super().__init__()
        self._file_path, self.signal = file_path, signal

    def _open_non_blocking(self) -> io.TextIOWrapper | None:
        try:
            descriptor = os.open(self._file_path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None                     # nobody reads
        return os.fdopen(descriptor, "wt")

    def _send_request(self, request: FileTimerRequest) -> None:
        try:
            file = self._open_non_blocking()
            if file is None:
                raise BrokenPipeError("Could not send the FileTimerRequest because "
                                      "FileTimerServer is not available.")
            with file:
                text = request.to_json()
                # writes up to that size are not mixed with those of others
                if len(text) > select.PIPE_BUF:
                    raise RuntimeError(f"FileTimerRequest larger than {select.PIPE_BUF} bytes is "
                                       f"not supported: {text}")
                file.write(text + "\n")
        except BrokenPipeError:
            raise
        except OSError as error:
            raise BrokenPipeError("Could not send the FileTimerRequest because FileTimerServer "
                                  "is not available.") from error

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Ask for a timer."""
        self._send_request(FileTimerRequest(os.getpid(), scope_id, expiration_time, self.signal))

    def release(self, scope_id: str) -> None:
        """Take the timer back."""
        self._send_request(FileTimerRequest(os.getpid(), scope_id, -1, 0))


class FileTimerServer(KeepsTimers):
    """Reads a pipe, which it makes, and ends processes whose time is over, and then its own: what
    is left of the job cannot go on."""

    def __init__(self, file_path: str, run_id: str, max_interval: float = 10,
                 daemon: bool = True,
                 log_event: Callable[[str, FileTimerRequest | None], None] | None = None):
        super().__init__()
        self._file_path, self._run_id = file_path, run_id
        self._max_interval, self._daemon = max_interval, daemon
        self._log_event = log_event or (lambda name, request: None)
        self._last_progress_time = int(time.time())
        self._watchdog_thread: threading.Thread | None = None
        self._is_client_started = self._run_once = self._stop_signaled = False
        self._wake = threading.Event()      # there is more to do than to wait for requests
        if os.path.exists(file_path):
            os.remove(file_path)
        os.mkfifo(file_path)

    def start(self) -> None:
        """Begin to read."""
        logger.info("Starting %s... max_interval=%s, daemon=%s, file_path=%s",
                    type(self).__name__, self._max_interval, self._daemon, self._file_path)
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, daemon=self._daemon)
        self._watchdog_thread.start()
        self._log_event("watchdog started", None)

    def stop(self) -> None:
        """Stop reading, and delete the pipe."""
        self._stop_signaled = True
        self._join()
        self._log_event("watchdog stopped", None)

    def run_once(self) -> None:
        """Read what is there, look at the timers once more, and stop."""
        self._run_once = True
        self._join()

    def _join(self) -> None:
        self._wake.set()
        if self._watchdog_thread:
            self._watchdog_thread.join()
            self._watchdog_thread = None
        if os.path.exists(self._file_path):
            os.remove(self._file_path)

    @staticmethod
    def is_process_running(pid: int) -> bool:
        """Is there such a process?"""
        try:
            os.kill(pid, 0)
            return True
        except OSError:
            return False

    def _watchdog_loop(self) -> None:
        # opened for writing too, there is never an end of the file
        descriptor = os.open(self._file_path, os.O_RDWR | os.O_NONBLOCK)
        with os.fdopen(descriptor, "r") as file:
            while not self._stop_signaled:
                try:
                    run_once = self._run_once
                    self._run_watchdog(file)
                    if run_once:
                        break
                    self._last_progress_time = int(time.time())
                except Exception:
                    logger.exception("Error running watchdog")

    def _run_watchdog(self, fd: io.TextIOWrapper) -> None:
        self.register_timers(self._get_requests(fd, self._max_interval))
        expired = self.get_expired_timers(time.time())
        log_debug_info_for_expired_timers(self._run_id, {
            pid: [timer.to_json() for timer in timers] for pid, timers in expired.items()})
        reaped, used = set(expired), 0
        for pid, timers in expired.items():
            logger.info("Reaping worker_pid=[%s]. Expired timers: %s", pid,
                        self._get_scopes(timers))
            ending = self._first_with_signal(timers)
            if ending is None:
                logger.info("No signal specified with worker=[%s]. Do not reap it.", pid)
            elif self._reap_worker(pid, ending.signal):
                logger.info("Successfully reaped worker=[%s] with signal=%s", pid, ending.signal)
                self._log_event("kill worker process", ending)
                used = ending.signal
            else:
                logger.error("Error reaping worker=[%s].", pid)
        if used:
            # the other workers of this agent wait for the one that is gone
            logger.info("Terminating the server process=[%s] because of expired timers",
                        os.getpid())
            self._reap_worker(os.getpid(), used)
        self.clear_timers(reaped)

    def _first_with_signal(self, timers: list[FileTimerRequest]) -> FileTimerRequest | None:
        for timer in sorted(timers, key=lambda timer: timer.expiration_time):
            self._log_event("timer expired", timer)
            if timer.signal > 0:
                return timer
        return None

    def _get_scopes(self, timer_requests: list[FileTimerRequest]) -> list[str]:
        return [request.scope_id for request in timer_requests]

    def _get_requests(self, fd: io.TextIOWrapper, max_interval: float
                      ) -> list[FileTimerRequest]:
        self._wake.wait(max_interval)
        found = []
        for line in fd.readlines():
            self._is_client_started = True
            about = json.loads(line)
            found.append(FileTimerRequest(about["pid"], about["scope_id"],
                                          about["expiration_time"], about["signal"]))
        return found

    def clear_timers(self, worker_pids: set[int]) -> None:
        """Forget all timers of these processes, and of those that are gone."""
        self._timers = {key: t for key, t in self._timers.items()
                        if key[0] not in worker_pids and self.is_process_running(key[0])}

    def _reap_worker(self, worker_pid: int, signal: int) -> bool:
        return self._end_process(worker_pid, signal, logger)

    def get_last_progress_time(self) -> int:
        """When the pipe was last read; now, until a client has asked for something."""
        return self._last_progress_time if self._is_client_started else int(time.time())
