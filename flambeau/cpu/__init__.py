"""The CPU as a device among devices: one, always there, in step with the program."""
from __future__ import annotations

from typing import Any

from flambeau.cpu import amp
from flambeau.cpu._capabilities import (
    _init_amx,
    _is_amx_fp16_supported,
    _is_amx_tile_supported,
    _is_avx2_supported,
    _is_avx512_bf16_supported,
    _is_avx512_supported,
    _is_vnni_supported,
    get_capabilities,
)


def is_available() -> bool:
    """True: there is a CPU."""
    return True


def is_initialized() -> bool:
    """True: there is nothing to initialise."""
    return True


def synchronize(device: Any = None) -> None:
    """Has nothing to wait for: ops on the CPU are done when they return."""


def current_device() -> str:
    """The name of the current device.

    >>> current_device()
    'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Has no effect: there is one CPU."""


def device_count() -> int:
    """1: the CPU counts as one device."""
    return 1


class Stream:
    """The one order in which ops run on the CPU."""

    def __init__(self, priority: int = -1):
        pass

    def wait_stream(self, stream: Any) -> None:
        """Has nothing to wait for."""

    def record_event(self) -> None:
        """Has nothing to record."""

    def wait_event(self, event: Any) -> None:
        """Has nothing to wait for."""


class Event:
    """A point in the order of ops, on the CPU always reached."""

    def __init__(self) -> None:
        pass

    def query(self) -> bool:
        """True: the point is reached."""
        return True

    def record(self, stream: Any = None) -> None:
        """Has nothing to record."""

    def synchronize(self) -> None:
        """Has nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """Has nothing to wait for."""


_default_stream = Stream()
_stream = _default_stream


def current_stream(device: Any = None) -> Stream:
    """The stream that ops run in."""
    return _stream


class StreamContext:
    """Makes a stream the current one until the block ends."""

    def __init__(self, stream: Any):
        self.stream = stream

    def __enter__(self) -> None:
        global _stream
        self._outer = _stream
        if self.stream is not None:
            _stream = self.stream

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        global _stream
        _stream = self._outer


def stream(stream: Stream) -> StreamContext:
    """A context in which `stream` is the current one."""
    return StreamContext(stream)


__all__ = ["is_available", "is_initialized", "synchronize", "current_device", "current_stream",
           "stream", "set_device", "device_count", "Stream", "StreamContext", "Event",
           "get_capabilities"]
