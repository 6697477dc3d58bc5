"""Timers: clients that ask for them, and servers that end workers whose time is over."""
from __future__ import annotations

import abc
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import getframeinfo, stack
from typing import Any

from flambeau._support.own_methods import define_in_subclasses
from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["RequestQueue", "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]

logger = get_logger(__name__)


class TimerRequest:
    """A worker asks for a timer that ends at `expiration_time`, seconds since 1970; a negative
    time takes the timer of that scope back."""

    __slots__ = ["expiration_time", "scope_id", "worker_id"]

    def __init__(self, worker_id: Any, scope_id: str, expiration_time: float):
        self.worker_id, self.scope_id = worker_id, scope_id
        self.expiration_time = expiration_time

    def _key(self) -> tuple[Any, ...]:
        return self.worker_id, self.scope_id, self.expiration_time

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimerRequest) and self._key() == other._key()

    __hash__ = None


class TimerClient(abc.ABC):
    """A worker's way to ask for timers."""

    @abc.abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Ask for a timer."""

    @abc.abstractmethod
    def release(self, scope_id: str) -> None:
        """Take the timer back."""


class RequestQueue(abc.ABC):
    """How requests reach a server."""

    @abc.abstractmethod
    def size(self) -> int:
        """How many wait."""

    @abc.abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Up to `size` requests, for which it waits `timeout` seconds."""


@define_in_subclasses()
class KeepsTimers:
    """Mixin of servers: their timers, by worker and scope."""

    def __init__(self) -> None:
        self._timers: dict[tuple[Any, str], Any] = {}

    def register_timers(self, timer_requests: list[Any]) -> None:
        """Keep timers, and take back those whose time is negative."""
        for request in timer_requests:
            key = request.worker_id, request.scope_id
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def get_expired_timers(self, deadline: float) -> dict[Any, list[Any]]:
        """Timers that end before `deadline`, by worker."""
        found: dict[Any, list[Any]] = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                found.setdefault(request.worker_id, []).append(request)
        return found

    def _end_process(self, pid: int, signal: int, logger: logging.Logger) -> bool:
        try:
            os.kill(pid, signal)
            return True
        except ProcessLookupError:
            logger.info("Process with pid=%s does not exist. Skipping", pid)
            return True
        except Exception:
            logger.exception("Error terminating pid=%s", pid)
            return False


class TimerServer(abc.ABC):
    """Looks at timers every `max_interval` seconds, and ends workers whose time is over."""

    def __init__(self, request_queue: RequestQueue, max_interval: float, daemon: bool = True):
        self._request_queue, self._max_interval, self._daemon = request_queue, max_interval, daemon
        self._watchdog_thread: threading.Thread | None = None
        self._stop_signaled = False

    @abc.abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Keep timers, and take back those whose time is negative."""

    @abc.abstractmethod
    def clear_timers(self, worker_ids: set[Any]) -> None:
        """Forget all timers of workers."""

    @abc.abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[str, list[TimerRequest]]:
        """Timers that end before `deadline`, by worker."""

    @abc.abstractmethod
    def _reap_worker(self, worker_id: Any) -> bool:
        """End a worker; is it gone?"""

    def _reap_worker_no_throw(self, worker_id: Any) -> bool:
        try:
            return self._reap_worker(worker_id)
        except Exception:
            logger.exception("Uncaught exception thrown from _reap_worker(), check that the "
                             "implementation correctly catches exceptions")
            return True

    def _watchdog_loop(self) -> None:
        while not self._stop_signaled:
            try:
                self._run_watchdog()
            except Exception:
                logger.exception("Error running watchdog")

    def _run_watchdog(self) -> None:
        size = max(1, self._request_queue.size())
        self.register_timers(self._request_queue.get(size, self._max_interval))
        reaped = set()
        for worker_id, timers in self.get_expired_timers(time.time()).items():
            logger.info("Reaping worker_id=[%s]. Expired timers: %s", worker_id,
                        self._get_scopes(timers))
            if self._reap_worker_no_throw(worker_id):
                reaped.add(worker_id)
            else:
                logger.error("Error reaping worker [%s]. Will retry on next watchdog.", worker_id)
        self.clear_timers(reaped)

    def _get_scopes(self, timer_requests: list[TimerRequest]) -> list[str]:
        return [request.scope_id for request in timer_requests]

    def start(self) -> None:
        """Begin to look."""
        logger.info("Starting %s... max_interval=%s, daemon=%s", type(self).__name__,
                    self._max_interval, self._daemon)
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, daemon=self._daemon)
        self._watchdog_thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stop_signaled = True
        if self._watchdog_thread:
            self._watchdog_thread.join(self._max_interval)
            self._watchdog_thread = None


_timer_client: TimerClient | None = None


def configure(timer_client: TimerClient) -> None:
    """Have `expires` ask that client."""
    global _timer_client
    _timer_client = timer_client


@contextmanager
def expires(after: float, scope: str | None = None, client: TimerClient | None = None
            ) -> Iterator[None]:
    """Inside, this worker has `after` seconds; its agent ends it if it takes longer.

    Raises:
        RuntimeError: no client is configured, and none given.
    """
    client = client or _timer_client
    if client is None:
        raise RuntimeError("Configure timer client before using countdown timers.")
    if scope is None:
        caller = getframeinfo(stack()[2][0])
        scope = f"{caller.filename}#{caller.lineno}"
    client.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        client.release(scope)
