"""Timers through a queue of `multiprocessing`."""
from __future__ import annotations

import os
import signal
import time
from queue import Empty
from typing import Any

from flambeau.distributed.elastic.timer.api import (
    KeepsTimers,
    RequestQueue,
    TimerClient,
    TimerRequest,
    TimerServer,
)
from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue"]

logger = get_logger(__name__)


class LocalTimerClient(TimerClient):
    """Asks the server that reads `mp_queue`, in the name of this process."""

    def __init__(self, mp_queue: Any):
        super().__init__()
        self._mp_queue = mp_queue

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Ask for a timer."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id: str) -> None:
        """Take the timer back."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """Requests from a queue of `multiprocessing`."""

    def __init__(self, mp_queue: Any):
        super().__init__()
        self._mp_queue = mp_queue

    def size(self) -> int:
        """How many wait."""
        return self._mp_queue.qsize()

    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Up to `size` requests, for which it waits `timeout` seconds."""
        found: list[TimerRequest] = []
        end = time.monotonic() + timeout
        while len(found) < size:
            try:
                found.append(self._mp_queue.get(timeout=max(0.0, end - time.monotonic())))
            except Empty:
                break
        return found


class LocalTimerServer(KeepsTimers, TimerServer):
    """Ends processes of this machine."""

    def __init__(self, mp_queue: Any, max_interval: float = 60, daemon: bool = True):
        KeepsTimers.__init__(self)
        TimerServer.__init__(self, MultiprocessingRequestQueue(mp_queue), max_interval, daemon)

    def clear_timers(self, worker_ids: set[int]) -> None:
        """Forget all timers of workers."""
        self._timers = {key: t for key, t in self._timers.items() if key[0] not in worker_ids}

    def _reap_worker(self, worker_id: int) -> bool:
        return self._end_process(worker_id, signal.SIGKILL, logger)
