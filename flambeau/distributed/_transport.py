"""Messages between processes: a connection for each pair, and a box for what has arrived.

Each process listens at a port of its own, and tells the others through the store. A message has
a key, of bytes, which says what it is for; messages of one key from one process stay in order.
A connection is only accepted from who knows the secret that the store holds.
"""
from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import threading
from collections import defaultdict, deque
from datetime import timedelta
from typing import Any

from flambeau.distributed.stores import DistNetworkError, Store, TCPStore

_HEAD = struct.Struct("!IQ")                    # length of the key, length of the body
_LIMIT = 1 << 10                                # of a key


class Closed(RuntimeError):
    """The other process has gone."""


def _base(store: Store) -> Store:
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return store


def _own_address(store: Store) -> str:
    """The address under which the other processes reach this one."""
    base = _base(store)
    if not isinstance(base, TCPStore) or base.host in ("localhost", "127.0.0.1", "::1"):
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((base.host, base.port or 1))         # sends nothing
        return probe.getsockname()[0]


class Peers:
    """Connections to all other processes of a group."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta):
        self.rank, self.size = rank, size
        self._sockets: dict[int, socket.socket] = {}
        self._sending = {other: threading.Lock() for other in range(size)}
        self._boxes: dict[tuple[int, bytes], deque[bytearray]] = defaultdict(deque)
        self._gone: dict[int, str] = {}
        self._arrived = threading.Condition()
        self._connect(store, timeout.total_seconds())
        for other, connection in self._sockets.items():
            connection.settimeout(None)
            threading.Thread(target=self._receive_all, args=(other, connection),
                             daemon=True).start()

    # ---- making connections ---------------------------------------------------------------------

    def _connect(self, store: Store, seconds: float) -> None:
        """Call those before this process, and wait for the calls of those after it."""
        if self.size == 1:
            return
        if self.rank == 0:
            store.set("secret", secrets.token_hex(16))
        secret = store.get("secret")
        address = _own_address(store)
        with socket.create_server((address, 0), backlog=self.size) as server:
            store.set(f"address/{self.rank}", f"{address}:{server.getsockname()[1]}")
            server.settimeout(seconds)
            for other in range(self.rank):
                host, _, port = store.get(f"address/{other}").decode().rpartition(":")
                try:
                    connection = socket.create_connection((host, int(port)), seconds)
                except OSError as error:
                    raise DistNetworkError(f"Gloo connectFullMesh failed: rank {self.rank} cannot "
                                           f"reach rank {other} at {host}:{port}: {error}"
                                           ) from error
                connection.sendall(secret + struct.pack("!I", self.rank))
                self._keep(other, connection)
            while len(self._sockets) < self.size - 1:
                self._accept(server, secret, seconds)

    def _accept(self, server: socket.socket, secret: bytes, seconds: float) -> None:
        try:
            connection, _ = server.accept()
        except TimeoutError:
            missing = sorted(set(range(self.size)) - set(self._sockets) - {self.rank})
            raise DistNetworkError(f"Gloo connectFullMesh failed: ranks {missing} have not called "
                                   f"rank {self.rank} in {seconds} seconds") from None
        connection.settimeout(seconds)
        hello = _read(connection, len(secret) + 4)
        if hello is None or not secrets.compare_digest(bytes(hello[:-4]), secret):
            connection.close()
            return
        self._keep(struct.unpack("!I", hello[-4:])[0], connection)

    def _keep(self, other: int, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets[other] = connection

    # ---- messages -------------------------------------------------------------------------------

    def _receive_all(self, other: int, connection: socket.socket) -> None:
        """Put what arrives from one process into its boxes, until it hangs up."""
        reason = "Connection closed by peer"
        with contextlib.suppress(OSError):
            while (head := _read(connection, _HEAD.size)) is not None:
                key_length, length = _HEAD.unpack(head)
                if key_length > _LIMIT:
                    reason = "a message that is none"
                    break
                key, body = _read(connection, key_length), _read(connection, length)
                if key is None or body is None:
                    break
                with self._arrived:
                    self._boxes[other, bytes(key)].append(body)
                    self._arrived.notify_all()
        with self._arrived:
            self._gone[other] = reason
            self._arrived.notify_all()

    def send(self, other: int, key: bytes, body: Any) -> None:
        """Send a message to another process."""
        view = memoryview(body).cast("B")
        try:
            with self._sending[other]:
                connection = self._sockets[other]
                connection.sendall(_HEAD.pack(len(key), len(view)) + key)
                connection.sendall(view)
        except (OSError, KeyError) as error:
            raise Closed(f"Connection closed by peer [rank {other}]: {error}") from error

    def _ready(self, others: list[int], key: bytes) -> int | None:
        return next((o for o in others if self._boxes[o, key]), None)

    def receive(self, others: list[int], key: bytes, seconds: float | None, what: str
                ) -> tuple[int, bytearray]:
        """The next message of a key from one of these processes, and who sent it."""
        with self._arrived:
            done = self._arrived.wait_for(
                lambda: self._ready(others, key) is not None
                or all(o in self._gone for o in others), seconds)
            other = self._ready(others, key)
            if other is not None:
                return other, self._boxes[other, key].popleft()
            if done:
                raise Closed(f"{self._gone[others[0]]} [rank {others[0]}]")
            raise RuntimeError(f"Timed out waiting {round((seconds or 0) * 1000)}ms for {what} "
                               "operation to complete")

    def close(self) -> None:
        """Hang up."""
        for connection in self._sockets.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._sockets.clear()


def _read(connection: socket.socket, length: int) -> bytearray | None:
    """That many bytes; None if the other side has hung up."""
    found = bytearray(length)
    view, at = memoryview(found), 0
    while at < length:
        count = connection.recv_into(view[at:])
        if not count:
            return None
        at += count
    return found
