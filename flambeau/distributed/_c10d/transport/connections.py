"""Messages between processes: a connection for each pair, and a box for what has arrived.

Each process listens at a port of its own, and tells the others through the store. A message has
a key, of bytes, which says what it is for; messages of one key from one process stay in order, and
go to those who wait for them in the order in which they began to wait.
A connection is only accepted from who knows the secret that the store holds.
"""
from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import secrets
import selectors
import socket
import struct
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flambeau.distributed._c10d.stores import DistNetworkError, Store
from flambeau.distributed._c10d.transport.addresses import absent, interface_of, listen, own_address

_HEAD = struct.Struct("!IQ")                    # length of the key, length of the body
_LIMIT = 1 << 10                                # of a key
_ASK, _ANSWER, _BYE, _REFUSED, _MISFIT = b"?ask", b"?answer", b"?bye", b"?refused", b"?misfit"
_PATIENCE = 1.0                                 # seconds until what is hopeless is given up
_questions = itertools.count()


class Receipt:
    """Someone who waits for the next message of a key from one of some processes."""

    def __init__(self, sources: list[int], key: bytes, use: Callable[[Receipt], None] | None):
        self.sources, self.key, self.use = sources, key, use
        self.source, self.body = -1, bytearray()
        self.error: Exception | None = None
        self.done = False

    def complete(self, source: int, body: bytearray, error: Exception | None = None) -> None:
        """Hand over what has come; the lock of the connections is not held."""
        self.source, self.body, self.error, self.done = source, body, error, True
        if self.use is not None:
            self.use(self)


class Peers:
    """Connections to all other processes of a group."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta):
        self.rank, self.size = rank, size
        self._sockets: dict[int, socket.socket] = {}
        self._sending = {other: threading.Lock() for other in range(size)}
        self._boxes: dict[tuple[int, bytes], deque[bytearray]] = {}
        self._waiting: dict[bytes, list[Receipt]] = {}
        self.gone: dict[int, str] = {}
        self.groups: dict[str, Any] = {}            # those that others can ask about
        self.left: dict[int, dict[str, int]] = {}   # what was behind them when they went
        # by process and group: before which collective it has refused how many calls, and why
        self.refused: dict[tuple[int, str], tuple[int, int, str]] = {}
        _open.add(self)
        self._arrived = threading.Condition()
        self._connect(store, timeout.total_seconds())
        for other, connection in self._sockets.items():
            connection.settimeout(None)
            threading.Thread(target=self._receive_all, args=(other, connection),
                             daemon=True).start()

    # ---- making connections ---------------------------------------------------------------------

    def _connect(self, store: Store, seconds: float) -> None:
        """Call those before this process, and wait for the calls of those after it."""
        chosen = interface_of("GLOO_SOCKET_IFNAME")
        if self.size == 1:
            return
        if self.rank == 0:
            store.set("secret", secrets.token_hex(16))
        secret = store.get("secret")
        address = own_address(store, self.rank, self.size, chosen)
        with listen(address, self.size) as server:
            store.set(f"address/{self.rank}", f"{address}:{server.getsockname()[1]}")
            server.settimeout(seconds)
            for other in range(self.rank):
                host, _, port = store.get(f"address/{other}").decode().rpartition(":")
                try:
                    connection = socket.create_connection((host, int(port)), seconds)
                except OSError as error:
                    raise DistNetworkError(f"connectFullMesh failed: rank {self.rank} cannot "
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
            raise absent(missing, self.rank, seconds) from None
        connection.settimeout(seconds)
        hello = b""
        with contextlib.suppress(EOFError):
            hello = bytes(read_exactly(connection, len(secret) + 4))
        if not secrets.compare_digest(hello[:-4], secret):
            connection.close()
            return
        self._keep(struct.unpack("!I", hello[-4:])[0], connection)

    def _keep(self, other: int, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets[other] = connection

    # ---- messages -------------------------------------------------------------------------------

    def _receive_all(self, other: int, connection: socket.socket) -> None:
        """Hand on what arrives from one process, until it hangs up."""
        reason = "Connection closed by peer"
        with contextlib.suppress(OSError, EOFError):
            while True:
                key_length, length = _HEAD.unpack(read_exactly(connection, _HEAD.size))
                if key_length > _LIMIT:
                    reason = "a message that is none"
                    break
                key = bytes(read_exactly(connection, key_length))
                self._deliver(other, key, read_exactly(connection, length))
        self._lose(other, reason)

    def _deliver(self, other: int, key: bytes, body: bytearray) -> None:
        """Give a message to the first who waits for it, or keep it."""
        if key in _ABOUT:
            _ABOUT[key](self, other, bytes(body))
            return
        with self._arrived:
            receipt = next((r for r in self._waiting.get(key, ()) if other in r.sources), None)
            if receipt is None:
                self._boxes.setdefault((other, key), deque()).append(body)
                return
            self._forget(receipt)
        receipt.complete(other, body)
        with self._arrived:
            self._arrived.notify_all()

    def _lose(self, other: int, reason: str) -> None:
        """Tell those who wait for a process alone that it has gone."""
        with self._arrived:
            self.gone[other] = reason
            lost = [r for waiting in self._waiting.values() for r in waiting
                    if all(source in self.gone for source in r.sources)]
            for receipt in lost:
                self._forget(receipt)
        for receipt in lost:
            receipt.complete(-1, bytearray(), self._closed(receipt.sources[0]))
        with self._arrived:
            self._arrived.notify_all()

    def _closed(self, other: int) -> DistNetworkError:
        return DistNetworkError(f"{self.gone[other]} [rank {other}]")

    def _forget(self, receipt: Receipt) -> None:
        waiting = self._waiting[receipt.key]
        waiting.remove(receipt)
        if not waiting:
            del self._waiting[receipt.key]

    def send(self, other: int, key: bytes, body: Any, seconds: float | None = None) -> None:
        """Send a message to another process, which takes it within a time."""
        view = memoryview(body).cast("B")
        end = None if seconds is None else time.monotonic() + seconds
        try:
            with self._sending[other]:
                connection = self._sockets[other]
                _write(connection, memoryview(_HEAD.pack(len(key), len(view)) + key), end)
                _write(connection, view, end)
        except TimeoutError:
            self._sockets.pop(other).close()        # part of the message may be on its way
            raise RuntimeError(f"Timed out waiting {round((seconds or 0) * 1000)}ms for rank "
                               f"{other} to take a message: it may be stopped") from None
        except (OSError, KeyError) as error:
            raise DistNetworkError(f"Connection closed by peer [rank {other}]: {error}") from error

    def expect(self, others: list[int], key: bytes,
               use: Callable[[Receipt], None] | None = None) -> Receipt:
        """Wait, without blocking, for the next message of a key from one of these processes;
        `use` is called as soon as it, or an error, is there, maybe in another thread."""
        receipt = Receipt(others, key, use)
        with self._arrived:
            source = next((o for o in others if (o, key) in self._boxes), None)
            if source is None:
                if not all(o in self.gone for o in others):
                    self._waiting.setdefault(key, []).append(receipt)
                    return receipt
                body, error = bytearray(), self._closed(others[0])
            else:
                box, error = self._boxes[source, key], None
                body = box.popleft()
                if not box:
                    del self._boxes[source, key]
        receipt.complete(-1 if source is None else source, body, error)
        return receipt

    def receive(self, others: list[int], key: bytes, seconds: float | None, what: str,
                refusal: Callable[[], str] = str) -> tuple[int, bytearray]:
        """The next message of a key from one of these processes, and who sent it. `refusal` says
        why it is not going to come."""
        receipt = self.expect(others, key)
        with self._arrived:
            why = self._await(receipt, seconds, refusal)
            if why is not None:
                if receipt in self._waiting.get(key, ()):
                    self._forget(receipt)
                raise RuntimeError(f"[Rank {self.rank}] {what} does not come about: {why}" if why
                                   else f"[Rank {self.rank}] Timed out waiting "
                                   f"{round((seconds or 0) * 1000)}ms for {what} "
                                   "operation to complete")
        if receipt.error is not None:
            raise self._refused_by(others, receipt.error, refusal())
        return receipt.source, receipt.body

    def _await(self, receipt: Receipt, seconds: float | None, refusal: Callable[[], str]
               ) -> str | None:
        """Wait for a message. None if it has come, why it is not going to, "" if time is over."""
        now = time.monotonic()
        end, since = (None if seconds is None else now + seconds), 0.0
        while not receipt.done:
            now = time.monotonic()
            if end is not None and now >= end:
                return ""
            why = refusal()
            since = (since or now) if why else 0.0
            if why and now - since >= _PATIENCE:
                return why
            limits = [since + _PATIENCE - now] * bool(why) + [end - now] * (end is not None)
            self._arrived.wait(min(limits, default=None))
        return None

    @staticmethod
    def _refused_by(others: list[int], error: Exception, why: str) -> Exception:
        """The error of a process that has gone, with what it has said before."""
        return error if not why else DistNetworkError(f"{error}: {why}")

    # ---- what the others are at -----------------------------------------------------------------

    def ask(self, others: list[int], group: str, seconds: float) -> dict[int, bytes]:
        """What some processes say of a group: those that answer in time."""
        number = next(_questions)
        key = _ANSWER + b"%d" % number
        asked = [other for other in others if self._reached(other, _ASK, json.dumps(
            [number, group]).encode())]
        end = time.monotonic() + seconds
        found = {}
        for other in asked:
            with contextlib.suppress(RuntimeError):
                left = max(0.0, end - time.monotonic())
                found[other] = bytes(self.receive([other], key, left, "question")[1])
        return found

    def _reached(self, other: int, key: bytes, body: bytes) -> bool:
        connection = self._sockets.get(other)
        if connection is None or not self._sending[other].acquire(timeout=0.1):
            return False                            # it has not taken an earlier message
        self._sending[other].release()
        with contextlib.suppress(RuntimeError, OSError, ValueError):
            if not _is_writable(connection, 0):
                return False                        # it does not take what is sent to it
            self.send(other, key, body)
            return True
        return False

    def _answer(self, other: int, body: bytes) -> None:
        number, name = json.loads(body)
        group = self.groups.get(name)
        if group is not None:
            self._reached(other, _ANSWER + b"%d" % number, group.answer())

    def tell(self, other: int, key: bytes, body: bytes) -> None:
        """Tell another process something, if it can be reached."""
        with contextlib.suppress(RuntimeError):
            self.send(other, key, body, _PATIENCE)

    def _note_refusal(self, other: int, body: bytes) -> None:
        name, number, count, reason = json.loads(body)
        with self._arrived:
            if number:
                self.refused[other, name] = (number, count, reason)
            else:
                self.refused.pop((other, name), None)
            self._arrived.notify_all()

    def report_misfit(self, sender: int, group: str, message: int, text: str) -> Receipt:
        """Tell a process that what it has sent does not fit; the receipt is done when it knows."""
        number = next(_questions)
        receipt = self.expect([sender], _ANSWER + b"%d" % number)
        self.tell(sender, _MISFIT, json.dumps([number, group, message, text]).encode())
        return receipt

    def _note_misfit(self, other: int, body: bytes) -> None:
        number, name, message, text = json.loads(body)
        group = self.groups.get(name)
        if group is not None:
            group.notices[other, message] = text
        self.tell(other, _ANSWER + b"%d" % number, b"")

    def _note_leave(self, other: int, body: bytes) -> None:
        self.left[other] = json.loads(body)

    def take_leave(self) -> None:
        """Tell the others what has been done: they need not wait for more."""
        done = json.dumps({name: group.finished for name, group in self.groups.items()}).encode()
        for other in list(self._sockets):
            self._reached(other, _BYE, done)

    def close(self) -> None:
        """Hang up."""
        self.take_leave()
        _open.discard(self)
        for connection in self._sockets.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._sockets.clear()


_ABOUT: dict[bytes, Callable[[Peers, int, bytes], None]] = {
    _ASK: Peers._answer, _BYE: Peers._note_leave, _REFUSED: Peers._note_refusal,
    _MISFIT: Peers._note_misfit}
_open: weakref.WeakSet[Peers] = weakref.WeakSet()
_pid = os.getpid()


@atexit.register
def _take_leave() -> None:
    if os.getpid() == _pid:
        for peers in list(_open):
            peers.take_leave()


def _write(connection: socket.socket, view: memoryview, end: float | None) -> None:
    """Write everything, until a point in time."""
    flags = getattr(socket, "MSG_DONTWAIT", None)
    if end is None or flags is None:
        connection.sendall(view)
        return
    while view:
        try:
            view = view[connection.send(view, flags):]
        except BlockingIOError:
            if not _is_writable(connection, max(0.0, end - time.monotonic())):
                raise TimeoutError from None


def _is_writable(connection: socket.socket, seconds: float) -> bool:
    """Does the other side take more, within a time?"""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_WRITE)
        return bool(selector.select(seconds))


def read_exactly(connection: socket.socket, length: int) -> bytearray:
    """That many bytes; an EOFError if the other side has hung up."""
    found = bytearray(length)
    view, at = memoryview(found), 0
    while at < length:
        count = connection.recv_into(view[at:])
        if not count:
            raise EOFError
        at += count
    return found
