"""Key-value stores, through which processes find each other: in memory, in a file, over TCP."""
from __future__ import annotations

import contextlib
import os
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any


class DistError(RuntimeError):
    """What went wrong between processes."""


class DistBackendError(DistError):
    """A backend failed."""


class DistNetworkError(DistError):
    """A connection failed."""


class DistStoreError(DistError):
    """A store failed, mostly by a timeout."""


class QueueEmptyError(DistStoreError):
    """There is nothing in a store's queue."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"


class Table:
    """The entries of a store, and those who wait for some. All values are bytes."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: bytes) -> None:
        with self.changed:
            self.entries[key] = value
            self.changed.notify_all()

    def append(self, key: str, value: bytes) -> None:
        with self.changed:
            self.set(key, self.entries.get(key, b"") + value)

    def add(self, key: str, amount: int) -> int:
        with self.changed:
            total = int(self.entries.get(key, b"0")) + amount
            self.set(key, str(total).encode())
            return total

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        with self.changed:
            current = self.entries.get(key)
            if current is None and expected:
                return expected
            if current is None or current == expected:
                self.set(key, desired)
                return desired
            return current

    def delete(self, key: str) -> bool:
        with self.changed:
            return self.entries.pop(key, None) is not None

    def check(self, keys: list[str]) -> bool:
        with self.changed:
            return all(key in self.entries for key in keys)

    def wait(self, keys: list[str], seconds: float) -> bool:
        """Were all keys there in time?"""
        with self.changed:
            return self.changed.wait_for(lambda: self.check(keys), seconds)

    def get(self, key: str, seconds: float) -> bytes | None:
        """The value, None if it did not come in time."""
        with self.changed:
            return self.entries[key] if self.wait([key], seconds) else None

    def keys(self) -> list[str]:
        with self.changed:
            return list(self.entries)


def _bytes(value: Any, method: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError(f"{method}(): incompatible function arguments: expected str as value, got "
                    f"{type(value).__name__}")


class Store:
    """What all stores do. Values are strings or bytes, and come back as bytes."""

    _timeout = timedelta(seconds=300)
    _own_keys = 0                           # entries that the store itself has made

    def _call(self, method: str, *args: Any) -> Any:
        """Call a method of the `Table`, wherever it is."""
        raise NotImplementedError("Store: use HashStore, FileStore, TCPStore or PrefixStore")

    def _timed_out(self, keys: list[str], timeout: timedelta) -> Exception:
        return DistStoreError("Wait timeout")

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        self._timeout = timeout

    def set(self, key: str, value: Any) -> None:
        """Store a value."""
        self._call("set", key, _bytes(value, "set"))

    def get(self, key: str) -> bytes:
        """The value; waits for it."""
        value = self._call("get", key, self._timeout.total_seconds())
        if value is None:
            raise self._timed_out([key], self._timeout)
        return value

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, 0 at first; gives the sum."""
        if not isinstance(amount, int):
            raise TypeError("add(): incompatible function arguments: expected int as amount, got "
                            f"{type(amount).__name__}")
        return self._call("add", key, amount)

    def append(self, key: str, value: Any) -> None:
        """Append to a value."""
        self._call("append", key, _bytes(value, "append"))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Store `desired_value` if the value is `expected_value` (or both are absent: ""); gives
        the value that is there then."""
        return self._call("compare_set", key, _bytes(expected_value, "compare_set"),
                          _bytes(desired_value, "compare_set"))

    def delete_key(self, key: str) -> bool:
        """Delete an entry; was there one?"""
        return self._call("delete", key)

    def check(self, keys: list[str]) -> bool:
        """Are there entries for all keys?"""
        return self._call("check", list(keys))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until there are entries for all keys."""
        timeout = self._timeout if timeout is None else timeout
        if not self._call("wait", list(keys), timeout.total_seconds()):
            raise self._timed_out(list(keys), timeout)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[Any]) -> None:
        """Store several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def list_keys(self) -> list[str]:
        """All keys."""
        return self._call("keys")

    def num_keys(self) -> int:
        """The number of entries; TCP and file stores count one of their own."""
        return len(self._call("keys")) + self._own_keys

    def has_extended_api(self) -> bool:
        """True: `append`, `multi_get` and `multi_set` are there."""
        return True


class HashStore(Store):
    """A store in the memory of this process, for its threads.

    >>> store = HashStore()
    >>> store.set("first_key", "first_value")
    >>> store.get("first_key")
    b'first_value'
    """

    def __init__(self) -> None:
        self._table = Table()

    def _call(self, method: str, *args: Any) -> Any:
        return getattr(self._table, method)(*args)


class PrefixStore(Store):
    """A view of another store in which all keys begin with `prefix/`.

    >>> inner = HashStore()
    >>> PrefixStore("mine", inner).set("key", "value")
    >>> inner.get("mine/key")
    b'value'
    """

    def __init__(self, prefix: str, store: Store):
        self.prefix, self.underlying_store = prefix, store

    @property
    def timeout(self) -> timedelta:
        """How long the store below waits."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long the store below waits."""
        self.underlying_store.set_timeout(timeout)

    @property
    def _timeout(self) -> timedelta:        # type: ignore[override]
        return self.underlying_store.timeout

    def _timed_out(self, keys: list[str], timeout: timedelta) -> Exception:
        return self.underlying_store._timed_out([f"{self.prefix}/{k}" for k in keys], timeout)

    def num_keys(self) -> int:
        """The number of entries of the store below."""
        return self.underlying_store.num_keys()

    def _call(self, method: str, *args: Any) -> Any:
        if method == "keys":
            start = f"{self.prefix}/"
            return [key[len(start):] for key in self.underlying_store._call("keys")
                    if key.startswith(start)]
        first = ([f"{self.prefix}/{key}" for key in args[0]] if isinstance(args[0], list)
                 else f"{self.prefix}/{args[0]}")
        return self.underlying_store._call(method, first, *args[1:])


# ---- over TCP -----------------------------------------------------------------------------------
#
# A message is a sequence of fields. Each field is a letter for its type, four bytes of length, and
# that many bytes: s text, b bytes, i integer, f float, t or n true or None, l a list of fields.

def _encode(value: Any) -> bytes:
    if value is None or isinstance(value, bool):
        kind, body = b"n" if value is None else b"t", b"1" if value else b""
    elif isinstance(value, str):
        kind, body = b"s", value.encode()
    elif isinstance(value, bytes):
        kind, body = b"b", value
    elif isinstance(value, int):
        kind, body = b"i", str(value).encode()
    elif isinstance(value, float):
        kind, body = b"f", struct.pack("!d", value)
    else:
        kind, body = b"l", b"".join(map(_encode, value))
    return kind + struct.pack("!I", len(body)) + body


def _decode(kind: bytes, body: bytes) -> Any:
    if kind == b"l":
        found, at = [], 0
        while at < len(body):
            size = struct.unpack_from("!I", body, at + 1)[0]
            found.append(_decode(body[at:at + 1], body[at + 5:at + 5 + size]))
            at += 5 + size
        return found
    return {b"n": lambda b: None, b"t": bool, b"s": bytes.decode, b"b": bytes, b"i": int,
            b"f": lambda b: struct.unpack("!d", b)[0]}[kind](body)


def _receive(stream: Any) -> Any:
    head = stream.read(5)
    if len(head) < 5:
        raise EOFError
    size = struct.unpack("!I", head[1:])[0]
    return _decode(head[:1], stream.read(size))


_METHODS = ("set", "append", "add", "compare_set", "delete", "check", "wait", "get", "keys")


class _Handler(socketserver.StreamRequestHandler):
    """One client of the server: calls of the table, until it hangs up."""

    def handle(self) -> None:
        with contextlib.suppress(EOFError, ConnectionError, OSError):
            while True:
                method, *args = _receive(self.rfile)
                if method not in _METHODS:
                    return
                self.wfile.write(_encode(getattr(self.server.table, method)(*args)))


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    block_on_close = False


class TCPStore(Store):
    """A store that a server holds, for the processes that can reach it. The master starts the
    server, in a thread; `port` 0 takes any free one.

    >>> server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    >>> client = TCPStore("127.0.0.1", server.port, wait_for_workers=False)
    >>> client.set("key", "value")
    >>> server.get("key")
    b'value'
    """

    _own_keys = 1
    libuvBackend = False

    def __init__(self, host_name: str, port: int, world_size: int | None = None,
                 is_master: bool = False, timeout: timedelta = timedelta(seconds=300),
                 wait_for_workers: bool = True, multi_tenant: bool = False,
                 master_listen_fd: int | None = None, use_libuv: bool = True):
        if master_listen_fd is not None:
            raise NotImplementedError("TCPStore: master_listen_fd")
        self.host, self._timeout = host_name, timeout
        self._server = None
        if is_master:
            try:
                self._server = _Server((host_name, port), _Handler)
            except OSError as error:
                raise DistNetworkError(f"The server socket has failed to listen on {host_name}:"
                                       f"{port}: {error}") from error
            self._server.table = Table()
            port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.port = port
        self._local = threading.local()
        self._connection()
        if wait_for_workers and world_size is not None and world_size > 1:
            self._await_workers(world_size)

    def _connection(self) -> Any:
        """This thread's connection: one that waits for a key does not hold up another."""
        if not hasattr(self._local, "stream"):
            self._local.socket = self._connect()
            self._local.stream = self._local.socket.makefile("rwb")
        return self._local.stream

    def _connect(self) -> socket.socket:
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                return socket.create_connection((self.host, self.port))
            except OSError as error:
                if time.monotonic() > end:
                    milliseconds = round(self._timeout.total_seconds() * 1000)
                    raise DistNetworkError(
                        f"The client socket has timed out after {milliseconds}ms while trying to "
                        f"connect to ({self.host}, {self.port}).") from error
                time.sleep(0.05)

    def _call(self, method: str, *args: Any) -> Any:
        stream = self._connection()
        stream.write(_encode([method, *args]))
        stream.flush()
        try:
            found = _receive(stream)
        except EOFError:
            raise DistNetworkError(f"the server at {self.host}:{self.port} has gone") from None
        return [k for k in found if k != "init/"] if method == "keys" else found

    def _await_workers(self, world_size: int) -> None:
        """Wait until that many stores are open."""
        count = self._call("add", "init/", 1)
        end = time.monotonic() + self._timeout.total_seconds()
        while count < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"Timed out after {round(self._timeout.total_seconds()) + 1} seconds waiting "
                    f"for clients. {count}/{world_size} clients joined.")
            time.sleep(0.02)
            count = self._call("add", "init/", 0)

    def _timed_out(self, keys: list[str], timeout: timedelta) -> Exception:
        milliseconds = round(timeout.total_seconds() * 1000)
        return DistStoreError(f"wait timeout after {milliseconds}ms, keys: "
                              f"{', '.join('/' + key for key in keys)}")

    def __del__(self) -> None:
        server = getattr(self, "_server", None)
        if server is not None:
            server.shutdown()
            server.server_close()


# ---- in a file ----------------------------------------------------------------------------------

class FileStore(Store):
    """A store in a file, for processes that see the same folder. The file is a log of entries,
    read and written under a lock."""

    _own_keys = 1

    def __init__(self, file_name: str, world_size: int = -1):
        self.path = file_name
        with self._locked():
            pass

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Any]:
        with open(self.path, "a+b") as file:
            try:
                import fcntl
            except ImportError:
                raise NotImplementedError("FileStore: needs file locks as POSIX has them"
                                          ) from None
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield file
            finally:
                file.flush()
                fcntl.flock(file, fcntl.LOCK_UN)

    def _call(self, method: str, *args: Any) -> Any:
        if method in ("wait", "get"):
            return self._poll(method, *args)
        with self._locked() as file:
            table = _replay(file)
            before = dict(table.entries)
            result = getattr(table, method)(*args)
            for key in before.keys() | table.entries.keys():
                if before.get(key) != table.entries.get(key):
                    file.write(_encode([key, table.entries.get(key)]))
        return result

    def _poll(self, method: str, keys: Any, seconds: float) -> Any:
        end = time.monotonic() + seconds
        while True:
            with self._locked() as file:
                found = getattr(_replay(file), method)(keys, 0)
            if found or found == b"" or time.monotonic() > end:
                return found
            time.sleep(0.01)

    def _timed_out(self, keys: list[str], timeout: timedelta) -> Exception:
        milliseconds = round(timeout.total_seconds() * 1000)
        return RuntimeError(f"Timeout waiting for key: {keys[0]} after {milliseconds} ms")


def _replay(file: Any) -> Table:
    table = Table()
    file.seek(0)
    with contextlib.suppress(EOFError):
        while True:
            key, value = _receive(file)
            if value is None:
                table.entries.pop(key, None)
            else:
                table.entries[key] = value
    file.seek(0, os.SEEK_END)
    return table
