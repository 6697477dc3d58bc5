"""`CheckpointException`: what has gone wrong in which process."""
from __future__ import annotations

import traceback
from traceback import StackSummary
from typing import Any

WRAPPED_EXCEPTION = tuple[BaseException, StackSummary]

__all__ = ["CheckpointException"]


def _wrap_exception(exc: BaseException) -> WRAPPED_EXCEPTION:
    return exc, traceback.extract_tb(exc.__traceback__)


def _is_wrapped_exception(obj: Any) -> bool:
    return (isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[0], BaseException)
            and isinstance(obj[1], StackSummary))


class CheckpointException(BaseException):
    """Processes have failed: `failures` maps their ranks to the errors."""

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """The errors, and where they were raised, by rank."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, trace) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(trace))
            text += "".join(traceback.format_exception_only(type(error), value=error))
        return text
