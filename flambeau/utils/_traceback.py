"""Where in a program something was: short forms of stack traces, and ones that are kept."""
from __future__ import annotations

import inspect
import itertools
import linecache
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
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


_numbers = itertools.count()


def _frame_in(file: str, line: int, name: str) -> FrameType:
    """A frame of a function of that name, at a line of that file."""
    scope: dict[str, Any] = {"here": sys._getframe}
    exec(compile("\n" * (line - 1) + "def function(): return here()", file, "exec"), scope)
    function = scope["function"]
    function.__code__ = function.__code__.replace(co_name=name)
    return function()


@contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Let the traces of errors show the source of functions that were compiled from text: what a
    module that was made by `exec` has as `__compile_source__`.

    >>> scope = {"__compile_source__": "def half(x): return 1 // x"}
    >>> exec(scope["__compile_source__"], scope)
    >>> try:
    ...     with report_compile_source_on_error():
    ...         scope["half"](0)
    ... except ZeroDivisionError as error:
    ...     print(traceback.extract_tb(error.__traceback__)[-1].line)
    def half(x): return 1 // x
    """
    try:
        yield
    except Exception as error:
        step: Any = error.__traceback__
        while step.tb_next is not None:
            after = step.tb_next
            source = after.tb_frame.f_globals.get("__compile_source__")
            if source is not None:
                file = f"<compiled source {next(_numbers)}>"
                linecache.cache[file] = len(source), None, source.splitlines(True), file
                frame = _frame_in(file, after.tb_lineno, after.tb_frame.f_code.co_name)
                step.tb_next = TracebackType(after.tb_next, frame, frame.f_lasti, after.tb_lineno)
            step = step.tb_next
        raise


__all__ = ["CapturedTraceback", "format_frame", "format_traceback_short",
           "report_compile_source_on_error", "shorten_filename"]
