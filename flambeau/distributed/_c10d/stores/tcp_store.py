"""A store that a server holds, over TCP."""
from __future__ import annotations

import contextlib
import errno
import os
import socket
import socketserver
import threading
import time
import weakref
from datetime import timedelta
from typing import Any

from flambeau.distributed._c10d.stores.encoding import encode, receive
from flambeau.distributed._c10d.stores.store import (
    DistNetworkError,
    DistStoreError,
    Store,
    Table,
    takes,
)

_METHODS = ("set", "append", "add", "compare_set", "delete", "check", "wait", "get", "keys",
            "queue_push", "queue_pop", "queue_len")
_BACKLOG = 2048


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    table: Table
    clients: set[socket.socket]

    def __init__(self, listening: socket.socket):
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening


class _Handler(socketserver.StreamRequestHandler):
    """One client of the server: calls of the table, until it hangs up."""

    server: _Server

    def handle(self) -> None:
        self.server.clients.add(self.connection)
        with contextlib.suppress(EOFError, ConnectionError, OSError):
            while True:
                method, *args = receive(self.rfile)
                if method not in _METHODS:
                    break
                self.wfile.write(encode(getattr(self.server.table, method)(*args)))
        self.server.clients.discard(self.connection)


def _listen_everywhere(port: int) -> socket.socket:
    """A socket that listens at a port of all addresses of this machine: who reaches the server
    may know it by another name than the server itself."""
    try:
        if socket.has_dualstack_ipv6():
            try:
                return socket.create_server(("", port), family=socket.AF_INET6, backlog=_BACKLOG,
                                            dualstack_ipv6=True)
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
        return socket.create_server(("", port), backlog=_BACKLOG)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0)
        raise DistNetworkError(
            "The server socket has failed to listen on any local network address. "
            f"port: {port}, useIpv6: false, code: -{error.errno}, name: {name}, "
            f"message: {os.strerror(error.errno or 0).lower()}") from error


class _Host:
    """A server that runs in a thread for as long as a store of this process holds it."""

    def __init__(self, port: int, listening: int | None):
        self.server = _Server(_listen_everywhere(port) if listening is None else
                              socket.socket(fileno=listening))
        self.server.table, self.server.clients = Table(), set()
        self.port = self.server.socket.getsockname()[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()

        # also before Python ends, as long as the thread can still answer
        weakref.finalize(self, _stop, self.server)


def _stop(server: Any) -> None:
    server.shutdown()
    server.server_close()
    for client in list(server.clients):
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


_shared: weakref.WeakValueDictionary[int, _Host] = weakref.WeakValueDictionary()


def _hosted(port: int, shared: bool, listening: int | None) -> _Host:
    """A server; `shared` takes the one that this process has at that port, if it has one."""
    found = (_shared.get(port) if shared else None) or _Host(port, listening)
    if shared:
        _shared[found.port] = found
    return found


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
    libuvBackend = True

    @takes("host_name: str, port: int, world_size: int | None = None, is_master: bool = False, "
           "timeout: datetime.timedelta = datetime.timedelta(seconds=300), wait_for_workers: bool "
           "= True, multi_tenant: bool = False, master_listen_fd: int | None = None, use_libuv: "
           "bool = True) -> None", owner="TCPStore")
    def __init__(self, host_name: str, port: int, world_size: int | None = None,
                 is_master: bool = False, timeout: timedelta = timedelta(seconds=300),
                 wait_for_workers: bool = True, multi_tenant: bool = False,
                 master_listen_fd: int | None = None, use_libuv: bool = True):
        self.host, self._timeout = host_name, timeout
        self._host = _hosted(port, multi_tenant, master_listen_fd) \
            if is_master else None
        self.port = port if self._host is None else self._host.port
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
                found = socket.create_connection((self.host, self.port),
                                                 max(end - time.monotonic(), 0.05))
                found.settimeout(None)
                return found
            except OSError as error:
                if time.monotonic() > end:
                    milliseconds = round(self._timeout.total_seconds() * 1000)
                    raise DistNetworkError(
                        f"The client socket has timed out after {milliseconds}ms while trying to "
                        f"connect to ({self.host}, {self.port}).") from error
                time.sleep(0.05)

    def _own_address(self) -> str:
        """The address of this machine from which it reaches the server."""
        self._connection()
        return self._local.socket.getsockname()[0]

    def _call(self, method: str, *args: Any) -> Any:
        stream = self._connection()
        try:
            stream.write(encode([method, *args]))
            stream.flush()
            found = receive(stream)
        except (EOFError, ConnectionError):
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
