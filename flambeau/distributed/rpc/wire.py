"""Messages between agents: how they are written to a connection, and read."""
from __future__ import annotations

import heapq
import pickle
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau.distributed._c10d.transport.connections import read_exactly
from flambeau.distributed._c10d.transport.messages import as_bytes

_SIZE = struct.Struct("!QI")            # bytes of the head, tensors
_LENGTH = struct.Struct("!Q")

def _strides(tensor: Any) -> tuple[int, ...] | None:
    """The strides that a tensor arrives with, None if its elements lie one after the other."""
    if tensor.is_contiguous() or 0 in tensor.stride():
        return None
    return tensor.stride()


def _write(connection: socket.socket, lock: threading.Lock, head: Any, tensors: list[Any]) -> None:
    """Send a head and tensors."""
    described = [(str(t.dtype).rpartition(".")[2], tuple(t.shape), _strides(t),
                  t.requires_grad and t.is_leaf) for t in tensors]
    data = pickle.dumps((head, described), protocol=5)
    buffers = [as_bytes(tensor.detach()) for tensor in tensors]
    with lock:
        connection.sendall(_SIZE.pack(len(data), len(buffers)) + data)
        for buffer in buffers:
            connection.sendall(_LENGTH.pack(buffer.nbytes))
            connection.sendall(buffer)


def _read(connection: socket.socket) -> tuple[Any, list[Any]]:
    """A head and its tensors."""
    size, count = _SIZE.unpack(read_exactly(connection, _SIZE.size))
    head, described = pickle.loads(read_exactly(connection, size))
    tensors = []
    for dtype, shape, strides, requires_grad in described[:count]:
        length = _LENGTH.unpack(read_exactly(connection, _LENGTH.size))[0]
        data, kind = read_exactly(connection, length), getattr(flambeau, dtype)
        tensor = (flambeau.frombuffer(data, dtype=flambeau.uint8).view(kind) if length
                  else flambeau.empty(0, dtype=kind)).reshape(shape)
        if strides is not None:
            tensor = flambeau.empty_strided(shape, strides, dtype=kind).copy_(tensor)
        tensors.append(tensor.requires_grad_() if requires_grad else tensor)
    return head, tensors


class _Link:
    """A connection to another worker, and the lock of who writes to it."""

    def __init__(self, connection: socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection, self.lock = connection, threading.Lock()


class _Deadlines:
    """Calls `expire(number, seconds)` when the time of a call is over."""

    def __init__(self, expire: Callable[[int, float], None]):
        self._expire, self._stopped = expire, False
        self._heap: list[tuple[float, int, float]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._watch, daemon=True, name="rpc_deadlines").start()

    def add(self, number: int, seconds: float) -> None:
        """A call has that many seconds from now."""
        with self._changed:
            heapq.heappush(self._heap, (time.monotonic() + seconds, number, seconds))
            if self._heap[0][1] == number:
                self._changed.notify()

    def stop(self) -> None:
        """Forget all calls."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _watch(self) -> None:
        while True:
            with self._changed:
                while not self._stopped and (
                        not self._heap or self._heap[0][0] > time.monotonic()):
                    self._changed.wait(self._heap[0][0] - time.monotonic()
                                       if self._heap else None)
                if self._stopped:
                    return
                _, number, seconds = heapq.heappop(self._heap)
            self._expire(number, seconds)       # does nothing if the answer has come
