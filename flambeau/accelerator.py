"""Accelerators: there is none, and these functions say so as PyTorch does on such a machine.

>>> is_available(), current_accelerator(), device_count()
(False, None, 0)
"""
from __future__ import annotations

import warnings
from typing import Any


def is_available() -> bool:
    """False: there is no accelerator."""
    return False


def device_count() -> int:
    """0: there is no accelerator."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """None: there is no accelerator."""
    return None


def _unavailable(name: str, documentation: str) -> Any:
    documentation += " Raises: there is no accelerator."

    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = documentation
    return function


current_device_index = _unavailable("current_device_index", "The index of the current device.")
current_stream = _unavailable("current_stream", "The stream that ops on a device run in.")
empty_cache = _unavailable("empty_cache", "Give cached memory back.")
empty_host_cache = _unavailable("empty_host_cache", "Give cached memory of the host back.")
get_device_capability = _unavailable("get_device_capability", "What a device can do.")
get_memory_info = _unavailable("get_memory_info", "Free and all memory of a device, in bytes.")
max_memory_allocated = _unavailable("max_memory_allocated", "The most bytes that tensors took.")
max_memory_reserved = _unavailable("max_memory_reserved", "The most bytes that were reserved.")
memory_allocated = _unavailable("memory_allocated", "The bytes that tensors take.")
memory_reserved = _unavailable("memory_reserved", "The bytes that are reserved.")
memory_stats = _unavailable("memory_stats", "Statistics of a device's memory.")
reset_accumulated_memory_stats = _unavailable("reset_accumulated_memory_stats",
    "Count from zero again.")
reset_peak_memory_stats = _unavailable("reset_peak_memory_stats",
    "Look for the largest use from now on.")
set_device_index = _unavailable("set_device_index", "Make a device the current one.")
set_stream = _unavailable("set_stream", "Make a stream the current one.")
synchronize = _unavailable("synchronize", "Wait for all that a device has to do.")


def current_device_idx() -> int:
    """The former name of `current_device_index`."""
    warnings.warn("Use `current_device_index` instead.", FutureWarning, stacklevel=2)
    return current_device_index()


def set_device_idx(device: Any, /) -> None:
    """The former name of `set_device_index`."""
    warnings.warn("Use `set_device_index` instead.", FutureWarning, stacklevel=2)
    set_device_index(device)


class device_index:
    """A context in which a device is the current one; `None` leaves things as they are."""

    def __init__(self, device: int | None, /):
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            set_device_index(self.idx)

    def __exit__(self, *exception: Any) -> None:
        pass


class Graph:
    """A recorded sequence of work for a device. Raises: there is no accelerator."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError("Cannot access accelerator device when none is available.")


__all__ = ["Graph", "current_accelerator", "current_device_idx", "current_device_index",
           "current_stream", "device_count", "device_index", "empty_cache", "empty_host_cache",
           "get_device_capability", "get_memory_info", "is_available", "max_memory_allocated",
           "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
           "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx",
           "set_device_index", "set_stream", "synchronize"]
