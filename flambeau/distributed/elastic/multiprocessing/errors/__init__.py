"""Why processes have failed: each writes a file, which the agent reads.

>>> @record
... def main():
...     return "done"
>>> main()
'done'
"""
from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from flambeau.distributed.elastic.multiprocessing.errors.error_handler import ErrorHandler
from flambeau.distributed.elastic.multiprocessing.errors.handlers import get_error_handler
from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

logger = get_logger(__name__)
JSON = dict
GlobalRank = int
_P = ParamSpec("_P")
_R = TypeVar("_R")
_NOT_AVAILABLE = "<N/A>"


@dataclass
class ProcessFailure:
    """How a process has ended: exit code, and its error file's message if there is one."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        if not os.path.isfile(self.error_file):
            self._set_no_reply_file()
            return
        try:
            with open(self.error_file) as file:
                self.error_file_data = json.load(file)
            self.message, self.timestamp = self._get_error_data(self.error_file_data)
        except Exception:
            logger.exception("Failed to parse reply file: %s", self.error_file)
            raise

    def _get_error_data(self, error_file_data: dict[str, Any]) -> tuple[Any, int]:
        message = error_file_data["message"]
        when = (error_file_data.get("timestamp", 0) if isinstance(message, str)
                else message["extraInfo"]["timestamp"])
        return message, int(when)

    def _set_no_reply_file(self) -> None:
        self.error_file, self.timestamp = _NOT_AVAILABLE, int(time.time())
        self.error_file_data = {"message": "<NONE>", "errorTraits": {
            "category": "system_terminated_error", "retryability": "False"}}
        self.message = (
            f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
            if self.exitcode < 0 else
            "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html")

    def signal_name(self) -> str:
        """The signal that has ended the process."""
        try:
            return signal.Signals(-self.exitcode).name if self.exitcode < 0 else _NOT_AVAILABLE
        except ValueError:
            return _NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        """When it ended."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Processes have failed: `failures` maps their ranks to what is known."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]):
        assert failures
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and what is known of it."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """The failures in words, the first one last."""
        title, first = f"{self.name} FAILED", self.get_first_failure()[0]
        root, others, width = "", [], len(title)
        for i, rank in enumerate(sorted(self.failures,
                                        key=lambda r: self.failures[r].timestamp)):
            text, longest = self._format_failure(i, rank, self.failures[rank])
            width = max(width, longest)
            if rank == first:
                root = text
            else:
                others.append(text)
        width = min(width, 60)
        border, section = boarder_delim * width, section_delim * width
        return "\n".join(["", border, title, section, "Failures:",
                          "\n".join(others or ["  <NO_OTHER_FAILURES>"]), section,
                          "Root Cause (first observed failure):", root, border])

    def _format_failure(self, idx: int, rank: int, failure: ProcessFailure) -> tuple[str, int]:
        """A failure in words, and its longest line."""
        signal_name = f" ({failure.signal_name()})" if failure.exitcode < 0 else ""
        message = failure.message
        if isinstance(message, dict):
            message = message.get("extraInfo", {}).get("py_callstack",
                                                       message.get("message", "<N/A>"))
            first, *rest = message.split("\n")
            message = "\n".join([first, *(f"  {line}" for line in rest)])
        text = (f"[{idx}]:\n  time      : {failure.timestamp_isoformat()}\n  host      : "
                f"{socket.getfqdn()}\n  rank      : {rank} (local_rank: {failure.local_rank})\n  "
                f"exitcode  : {failure.exitcode} (pid: {failure.pid}) {signal_name}\n  error_file: "
                f"{failure.error_file}\n  traceback : {message}")
        return text, max(map(len, text.split("\n")))


def record(fn: Callable[_P, _R], error_handler: ErrorHandler | None = None
           ) -> Callable[_P, _R | None]:
    """Decorates a program's main function: an error is written to the error file, and raised."""
    handler = error_handler or get_error_handler()

    @wraps(fn)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            # a program that ends well with sys.exit(0) just ends
            if error.code == 0:
                return None
            raise
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            if failure.error_file != _NOT_AVAILABLE:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            else:
                logger.info("local_rank %s FAILED with no error file. Decorate your entrypoint fn "
                            "with @record for traceback info. See: "
                            "https://pytorch.org/docs/stable/elastic/errors.html", rank)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise
    return wrapper
