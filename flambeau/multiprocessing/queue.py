"""Queues whose objects may have tensors in them, which move to shared memory."""
from __future__ import annotations

import io
import pickle
from multiprocessing import queues
from multiprocessing.reduction import ForkingPickler
from typing import Any

__all__ = ["ConnectionWrapper", "Queue", "SimpleQueue"]


class ConnectionWrapper:
    """A connection that pickles what it sends as processes of this library do."""

    def __init__(self, conn: Any):
        self.conn = conn

    def send(self, obj: Any) -> None:
        """Send an object."""
        buffer = io.BytesIO()
        ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(obj)
        self.send_bytes(buffer.getvalue())

    def recv(self) -> Any:
        """The next object."""
        return pickle.loads(self.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if "conn" in self.__dict__:
            return getattr(self.conn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'conn'")


class Queue(queues.Queue):
    """Python's queue between processes, for tensors too."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        ends: Any = self
        ends._reader = ConnectionWrapper(ends._reader)
        ends._writer = ConnectionWrapper(ends._writer)
        ends._send, ends._recv = ends._writer.send, ends._reader.recv


class SimpleQueue(queues.SimpleQueue):
    """Python's simple queue between processes, for tensors too."""

    def _make_methods(self) -> None:
        ends: Any = self
        if not isinstance(ends._reader, ConnectionWrapper):
            ends._reader = ConnectionWrapper(ends._reader)
            ends._writer = ConnectionWrapper(ends._writer)
        getattr(super(), "_make_methods", lambda: None)()
