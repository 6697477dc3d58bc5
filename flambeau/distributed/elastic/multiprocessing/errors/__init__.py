"""Why a process has failed: written to the file that `TORCHELASTIC_ERROR_FILE` names.

>>> @record
... def main():
...     return "done"
>>> main()
'done'
"""
from __future__ import annotations

import faulthandler
import functools
import json
import os
import signal
import time
import traceback
from dataclasses import dataclass, field
from typing import Any


class ErrorHandler:
    """Writes errors to a file, as JSON."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Have Python print where a crash happened."""
        try:
            faulthandler.enable(all_threads=True)
        except Exception:           # there may be no real stderr
            return

    def record_exception(self, e: BaseException) -> None:
        """Write an error to the file, if there is one."""
        path = self._get_error_file_path()
        if not path:
            return
        about = {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": {
            "py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}}
        with open(path, "w") as file:
            json.dump(about, file)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Write another process's error file, the root cause, as one's own."""
        with open(rootcause_error_file) as file:
            about = json.load(file)
        if error_code:
            message = about.get("message")
            (message if isinstance(message, dict) else about)["errorCode"] = error_code
        path = self._get_error_file_path()
        if path:
            with open(path, "w") as file:
                json.dump(about, file)


def get_error_handler() -> ErrorHandler:
    """A handler of errors."""
    return ErrorHandler()


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
        self.error_file_data, self.timestamp = {}, int(time.time())
        if os.path.isfile(self.error_file):
            with open(self.error_file) as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            if isinstance(self.message, dict):
                self.timestamp = int(self.message["extraInfo"]["timestamp"])
        else:
            self.error_file = "<N/A>"
            self.message = (f"Signal {-self.exitcode} ({self.signal_name()}) received by PID "
                            f"{self.pid}" if self.exitcode < 0 else
                            "To enable traceback see: "
                            "https://pytorch.org/docs/stable/elastic/errors.html")

    def signal_name(self) -> str:
        """The signal that has ended the process."""
        if self.exitcode >= 0:
            return "<N/A>"
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return "<N/A>"

    def timestamp_isoformat(self) -> str:
        """When it ended."""
        from datetime import datetime
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Processes have failed: `failures` maps their ranks to what is known."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]):
        self.name, self.failures = name, failures
        assert self.failures
        lines = [f"{name} FAILED"]
        for rank, failure in sorted(failures.items(), key=lambda item: item[1].timestamp):
            message = failure.message
            if isinstance(message, dict):
                message = message.get("message")
            lines.append(f"  time      : {failure.timestamp_isoformat()}\n"
                         f"  rank      : {rank} (local_rank: {failure.local_rank})\n"
                         f"  exitcode  : {failure.exitcode} (pid: {failure.pid})\n"
                         f"  error_file: {failure.error_file}\n"
                         f"  traceback : {message}")
        super().__init__("\n".join(lines))

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and what is known of it."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]


def record(fn: Any, error_handler: ErrorHandler | None = None) -> Any:
    """Decorates a program's main function: an error is written to the error file, and raised."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as e:
            if e.code:
                handler.record_exception(e)
            raise
        except ChildFailedError as e:
            _, failure = e.get_first_failure()
            if failure.error_file != "<N/A>":
                handler.dump_error_file(failure.error_file, failure.exitcode)
            else:
                handler.record_exception(e)
            raise
        except Exception as e:
            handler.record_exception(e)
            raise
    return wrapper


__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]
