"""Streams and events of a device without queues, and the modules that stand for devices.

Ops are done when they return, so a stream is always idle and an event always reached.

>>> Stream()
torch.Stream device_type=cpu, device_index=-1, stream_id=0
>>> Event().query()
True
"""
from __future__ import annotations

import importlib
from typing import Any

from flambeau.core.devices import device as make_device
from flambeau.schema.arguments import bound

_STREAM = ("Stream(Device? device=None, *, int priority=0) -> ()",
           "Stream(int stream_id, int device_index, int device_type, *, int priority=0) -> ()")
_EVENT = ("Event(Device? device=None, *, bool enable_timing=False, bool blocking=False, "
          "bool interprocess=False) -> ()",)


class OutOfMemoryError(RuntimeError):
    """What an accelerator raises that cannot hold a tensor. Nothing here raises it: for want of
    main memory Python raises `MemoryError`."""


class AcceleratorError(RuntimeError):
    """An error of an accelerator. There is none to raise it."""


def on_cpu(device: Any) -> Any:
    """The device (None: the CPU), if it is one of those that are here."""
    found = make_device("cpu" if device is None else device)
    if found.type not in ("cpu", "meta"):
        raise RuntimeError(f"PyTorch is not linked with support for {found.type} devices")
    return found


class Stream:
    """The order in which ops run; on the CPU there is one."""

    stream_id = 0
    device_index = -1

    def __init__(self, *args: Any, **kwargs: Any):
        given = bound(_STREAM, args, kwargs)
        if len(given) == 4:
            raise NotImplementedError("Stream: flambeau has no streams of accelerators")
        self.device = on_cpu(given[0])

    def query(self) -> bool:
        """True: all work is done."""
        return True

    def synchronize(self) -> None:
        """Has nothing to wait for."""

    def wait_event(self, event: Event) -> None:
        """Has nothing to wait for."""

    def wait_stream(self, stream: Stream) -> None:
        """Raises, as the CPU has no events."""
        raise RuntimeError("cpu backend doesn't support events.")

    def record_event(self, event: Any = None) -> Event:
        """Raises, as the CPU has no events."""
        raise RuntimeError("cpu backend doesn't support events.")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(("Stream", self.device.type))

    def __repr__(self) -> str:
        return (f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, "
                f"stream_id={self.stream_id}")


class Event:
    """A point in the order of ops; on the CPU it is always reached and cannot be recorded."""

    event_id = 0

    def __init__(self, *args: Any, **kwargs: Any):
        self.device = on_cpu(bound(_EVENT, args, kwargs)[0])

    def query(self) -> bool:
        """True: the point is reached."""
        return True

    def synchronize(self) -> None:
        """Has nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """Has nothing to wait for."""

    def record(self, stream: Any = None) -> None:
        """Raises, as the CPU has no events."""
        raise RuntimeError("cpu backend doesn't support events.")

    def elapsed_time(self, end_event: Event) -> float:
        """Raises, as neither event has been recorded."""
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self) -> str:
        return (f"torch.Event device_type={self.device.type}, device_index=-1, event_flag=0, "
                "event_id=0")


def get_device_module(device: Any = None) -> Any:
    """The package of a device, such as `flambeau.cpu`.

    >>> get_device_module("cpu").__name__
    'flambeau.cpu'
    """
    if device is not None and not isinstance(device, str | make_device):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    name = make_device("cpu" if device is None else device).type
    try:
        return importlib.import_module(f"flambeau.{name}")
    except ModuleNotFoundError:
        raise RuntimeError(f"Device '{name}' does not have a corresponding module registered as "
                           f"'torch.{name}'.") from None


for _public in (AcceleratorError, OutOfMemoryError, Stream, Event, get_device_module):
    _public.__module__ = "torch"
__all__ = ["AcceleratorError", "Event", "OutOfMemoryError", "Stream", "get_device_module"]
