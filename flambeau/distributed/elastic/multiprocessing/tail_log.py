"""Showing what workers write to their log files."""
from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TextIO

from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["TailLog", "tail_logfile"]

logger = get_logger(__name__)


def tail_logfile(header: str, file: str, dst: TextIO, finished: Event, interval_sec: float,
                 log_line_filter: Callable[[str], bool] | None = None) -> None:
    """Write the lines of a file to `dst`, after `header`, as they come, until `finished`."""
    while not os.path.exists(file):
        if finished.is_set():
            return
        time.sleep(interval_sec)
    with open(file, errors="replace") as source:
        while True:
            line = source.readline()
            if line:
                if log_line_filter is None or log_line_filter(line):
                    dst.write(f"{header}{line}")
            elif finished.is_set():
                break                   # nothing more comes
            else:
                time.sleep(interval_sec)


class TailLog:
    """Writes the lines of log files to one stream, each after a prefix that tells whose it is."""

    def __init__(self, name: str, log_files: dict[int, str], dst: TextIO,
                 log_line_prefixes: dict[int, str] | None = None, interval_sec: float = 0.1,
                 log_line_filter: Callable[[str], bool] = lambda line: True):
        self._name, self._log_files, self._dst = name, log_files, dst
        self._log_line_prefixes, self._interval_sec = log_line_prefixes or {}, interval_sec
        self._log_line_filter = log_line_filter
        self._finished_events = {rank: Event() for rank in log_files}
        self._futs: list[Future[None]] = []
        self._stopped = False
        self._threadpool = ThreadPoolExecutor(
            len(log_files), f"{type(self).__qualname__}_{name}") if log_files else None

    def start(self) -> TailLog:
        """Begin to write."""
        if self._threadpool is not None:
            self._futs += [
                self._threadpool.submit(
                    tail_logfile, self._log_line_prefixes.get(rank, f"[{self._name}{rank}]:"),
                    file, self._dst, self._finished_events[rank], self._interval_sec,
                    self._log_line_filter)
                for rank, file in self._log_files.items()]
        return self

    def stop(self) -> None:
        """Write what is still there, and end."""
        for finished in self._finished_events.values():
            finished.set()
        for rank, future in zip(self._log_files, self._futs):
            try:
                future.result()
            except Exception as error:
                logger.exception("error in log tailor for %s%s. %s", self._name, rank,
                                 type(error).__qualname__)
        if self._threadpool is not None:
            self._threadpool.shutdown(wait=True)
        self._stopped = True

    def stopped(self) -> bool:
        """Has `stop` been called?"""
        return self._stopped
