"""NVIDIA's profiler: it needs a CUDA device."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

from flambeau._support.devices.absent import refusal, settle
from flambeau.cuda import MESSAGE

start = refusal("start", AssertionError, MESSAGE)
stop = refusal("stop", AssertionError, MESSAGE)


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """AssertionError when it is entered: there is no CUDA device."""
    start()
    yield


settle(globals())
__all__ = ["profile", "start", "stop"]
