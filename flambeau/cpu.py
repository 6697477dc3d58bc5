"""The CPU as a device, in the manner of `torch.cuda`."""
from __future__ import annotations

from typing import Any

from flambeau.core.modes import ContextDecorator


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1: all processors are one device."""
    return 1


def current_device() -> str:
    """"cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Has no effect: there is one device."""


def synchronize(device: Any = None) -> None:
    """Has no effect: every op has ended when it returns."""


class Stream:
    """The order in which ops run: on the CPU, the order of the program."""

    def __init__(self, priority: int = -1):
        pass

    def wait_stream(self, stream: Any) -> None:
        """Has no effect: there is one stream."""


_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The one stream."""
    return _stream


class StreamContext(ContextDecorator):
    """Has no effect: there is one stream."""

    def __init__(self, stream: Any):
        self.stream = stream

    def clone(self) -> StreamContext:
        return type(self)(self.stream)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


def stream(stream: Any) -> StreamContext:
    """A context that selects a stream: it has no effect."""
    return StreamContext(stream)


__all__ = ["Stream", "StreamContext", "current_device", "current_stream", "device_count",
           "is_available", "set_device", "stream", "synchronize"]
