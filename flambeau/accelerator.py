"""Accelerators: there is none, and these functions say so as PyTorch does on such a machine.

>>> is_available(), current_accelerator(), device_count()
(False, None, 0)
"""
from __future__ import annotations

import warnings
from typing import Any

from flambeau._support.devices.absent import refusal, settle, unavailable
from flambeau._support.lazy.modules import parts


def is_available() -> bool:
    """False: there is no accelerator."""
    return False


def device_count() -> int:
    """0: there is no accelerator."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """None: there is no accelerator."""
    return None


_NONE = "Cannot access accelerator device when none is available."


def _unavailable(heading: str, documentation: str) -> Any:
    made = refusal(heading, RuntimeError, _NONE)
    made.__doc__ = documentation + " Raises: there is no accelerator."
    return made


current_device_index = _unavailable("current_device_index", "The index of the current device.")
current_stream = _unavailable("current_stream(device=None,/)",
    "The stream that ops on a device run in.")
empty_cache = _unavailable("empty_cache", "Give cached memory back.")
empty_host_cache = _unavailable("empty_host_cache", "Give cached memory of the host back.")
get_device_capability = _unavailable("get_device_capability(device=None,/)",
    "What a device can do.")
get_memory_info = _unavailable("get_memory_info(device_index=None,/)",
    "Free and all memory of a device, in bytes.")
max_memory_allocated = _unavailable("max_memory_allocated(device_index=None,/)",
    "The most bytes that tensors took.")
max_memory_reserved = _unavailable("max_memory_reserved(device_index=None,/)",
    "The most bytes that were reserved.")
memory_allocated = _unavailable("memory_allocated(device_index=None,/)",
    "The bytes that tensors take.")
memory_reserved = _unavailable("memory_reserved(device_index=None,/)",
    "The bytes that are reserved.")
memory_stats = _unavailable("memory_stats(device_index=None,/)",
    "Statistics of a device's memory.")
reset_accumulated_memory_stats = _unavailable("reset_accumulated_memory_stats(device_index=None,/)",
    "Count from zero again.")
reset_peak_memory_stats = _unavailable("reset_peak_memory_stats(device_index=None,/)",
    "Look for the largest use from now on.")
set_device_index = _unavailable("set_device_index(device,/)", "Make a device the current one.")
set_stream = _unavailable("set_stream(stream)", "Make a stream the current one.")
synchronize = _unavailable("synchronize(device=None,/)", "Wait for all that a device has to do.")


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

    def __exit__(self, *exc_info: Any) -> None:
        pass


Graph = unavailable("Graph(keep_graph=False,*,pool=None,capture_error_mode='default')",
                    RuntimeError, _NONE, "A recorded sequence of work for a device. Raises: there "
                    "is no accelerator.", module=__name__)


settle(globals())
__all__ = ["Graph", "current_accelerator", "current_device_idx", "current_device_index",
           "current_stream", "device_count", "device_index", "empty_cache", "empty_host_cache",
           "get_device_capability", "get_memory_info", "is_available", "max_memory_allocated",
           "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
           "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx",
           "set_device_index", "set_stream", "synchronize"]

parts(__name__, {
    "graphs": "Graph",
    "memory":
        "empty_cache empty_host_cache get_memory_info max_memory_allocated "
        "max_memory_reserved memory_allocated memory_reserved memory_stats "
        "reset_accumulated_memory_stats reset_peak_memory_stats"})
