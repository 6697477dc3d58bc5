"""Where in a program something was: short forms of stack traces, and ones that are kept."""
from __future__ import annotations

import inspect
import os
import traceback
from types import FrameType, TracebackType
from typing import Any


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A path without the folders that it has in common with `base`, by default those that hold this
    package.

    >>> shorten_filename("/home/me/project/run.py", base="/home/me/other")
    'project/run.py'
    """
    if base is None:
        base = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    try:
        prefix = os.path.commonpath([fn, base])
    except ValueError:
        return fn
    return fn[len(prefix):].lstrip(os.sep)


def format_frame(frame: Any, *, base: str | None = None, line: bool = False) -> str:
    """One entry of a stack as `file:line in function`, with the source line first if asked for."""
    text = f"{frame.line}  # " if line else ""
    return f"{text}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """The last entry of a traceback."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """A stack trace that is kept, and made into text only when it is asked for.

    >>> CapturedTraceback.extract().summary()[-1].name
    '<module>'
    """

    __slots__ = ("skip", "tb")

    def __init__(self, tb: Any, skip: int = 0):
        self.tb, self.skip = tb, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The stack of the caller, without its `skip` innermost entries."""
        frame: FrameType | None = inspect.currentframe()
        for _ in range(skip + 1):
            frame = frame and frame.f_back
        return CapturedTraceback(traceback.StackSummary.extract(
            reversed([*traceback.walk_stack(frame)]), lookup_lines=False))

    def cleanup(self) -> None:
        """Forget the trace."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """The entries, outermost first."""
        return traceback.StackSummary() if self.tb is None else self.tb

    def format(self) -> list[str]:
        """The entries as text, outermost first."""
        return traceback.format_list(self.summary())

    def __getstate__(self) -> Any:
        return None, {"tb": None, "skip": self.skip}

    @staticmethod
    def format_all(tbs: list[CapturedTraceback]) -> list[list[str]]:
        """Several traces as text."""
        return [tb.format() for tb in tbs]


__all__ = ["CapturedTraceback", "format_frame", "format_traceback_short", "shorten_filename"]
