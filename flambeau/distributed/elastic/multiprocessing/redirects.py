"""Sending what this process prints, and what its libraries print, to a file."""
from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

_VALID_STD = {"stdout", "stderr"}


def get_libc() -> ctypes.CDLL | None:
    """The C library of this process, whose buffers of its own `redirect` empties; None where
    there is none to load."""
    if sys.platform in ("darwin", "win32"):
        return None
    return ctypes.CDLL(None)


libc = get_libc()


def _flush(stream: Any) -> None:
    stream.flush()
    if libc is not None:
        libc.fflush(None)


@contextmanager
def redirect(std: str, to_file: str) -> Iterator[None]:
    """Inside, "stdout" or "stderr" goes to a file: also what code in C prints, since it is the
    descriptor that changes."""
    if std not in _VALID_STD:
        raise ValueError(f"unknown standard stream <{std}>, must be one of {_VALID_STD}")
    stream = getattr(sys, std)
    descriptor = stream.fileno()
    with open(to_file, mode="w+b") as file:
        _flush(stream)
        kept = os.dup(descriptor)
        os.dup2(file.fileno(), descriptor)
        try:
            yield
        finally:
            _flush(stream)
            os.dup2(kept, descriptor)
            os.close(kept)


redirect_stdout, redirect_stderr = partial(redirect, "stdout"), partial(redirect, "stderr")
