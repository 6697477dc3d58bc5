"""Page-locked memory, from which an accelerator could copy: without one, tensors stay as they are.
"""
from __future__ import annotations

import queue
from typing import Any

import flambeau
from flambeau._utils import ExceptionWrapper
from flambeau.utils import _pytree

MP_STATUS_CHECK_INTERVAL = 5.0      # seconds between two looks at whether a process is there


def pin_memory(data: Any, device: Any = None) -> Any:
    """The data, with its tensors (and what has a method `pin_memory`) in page-locked memory."""
    def pinned(value: Any) -> Any:
        if isinstance(value, flambeau.Tensor):
            return value.pin_memory() if flambeau.accelerator.is_available() else value
        return value.pin_memory() if hasattr(value, "pin_memory") else value
    return _pytree.tree_map(pinned, data)


def _pin_memory_loop(in_queue: Any, out_queue: Any, device_id: Any, done_event: Any,
                     device: Any) -> None:
    """Move batches from one queue to another, until `done_event` is set."""
    while not done_event.is_set():
        try:
            message = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        index, data = message
        if not isinstance(data, ExceptionWrapper):
            try:
                data = pin_memory(data, device)
            except Exception:
                data = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        out_queue.put((index, data))


__all__ = ["pin_memory"]
