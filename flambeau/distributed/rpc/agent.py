"""The agent of a worker: it sends calls to other workers, and runs those that they send.

Each worker listens at a port and tells it through the store; a connection is opened by who calls
first, and only accepted from who knows the secret that the store holds. A message is a head (what
it is, its number, the pickled call) and the memory of its tensors. The value comes back in a
message of the same number.
"""
from __future__ import annotations

import contextlib
import logging
import pickle
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flambeau.distributed._c10d.stores import PrefixStore, Store
from flambeau.distributed._c10d.transport.addresses import interface_of, listen, own_address
from flambeau.distributed._c10d.transport.connections import read_exactly
from flambeau.distributed.autograd import recording
from flambeau.distributed.autograd.engine import send_gradients
from flambeau.distributed.rpc.calls import (
    PythonUDF,
    RemoteException,
    _handle_exception,
    describe_error,
)
from flambeau.distributed.rpc.constants import UNSET_RPC_TIMEOUT
from flambeau.distributed.rpc.current import WorkerInfo
from flambeau.distributed.rpc.internal import deserialize, deserialize_call, serialize
from flambeau.distributed.rpc.wire import _Deadlines, _Link, _read, _write
from flambeau.futures import Future, collect_all

_TIMEOUT_ERROR = "RPCErr:1:RPC ran for more than set timeout ({} ms) and will now be marked with " \
                 "an error"

_logger = logging.getLogger("torch.distributed.rpc")


def _chosen_address() -> str | None:
    """The address of the interface that TP_SOCKET_IFNAME names, if there is such a one."""
    try:
        return interface_of("TP_SOCKET_IFNAME")
    except RuntimeError as error:
        _logger.warning("%s; another one is taken", error)
        return None


class RpcAgent:
    """What a transport does; see `TensorPipeAgent`."""


# The agent ----------------------------------------------------------------------------------


class TensorPipeAgent(RpcAgent):
    """The agent of this worker."""

    calls_itself = False                # are values that are made here asked for by a message?

    def __init__(self, store: Store, name: str, rank: int, world_size: int | None, opts: Any,
                 reverse_device_maps: Any = None, devices: Any = None):
        self.store, self._options, self.is_static_group = store, opts, world_size is not None
        self._table = PrefixStore("workers", store)
        self._me = WorkerInfo(name, rank)
        self._world_size = world_size
        self._by_name: dict[str, WorkerInfo] = {}
        self._by_id: dict[int, WorkerInfo] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._links: dict[int, _Link] = {}                          # by worker: where to write
        self._connections: list[socket.socket] = []
        self._lock = threading.Lock()
        self._pending: dict[int, tuple[Future[Any], int]] = {}      # by number: value, worker
        self._next_number = 0
        self._running = 0                           # calls of others that run here
        self._pool = ThreadPoolExecutor(opts.num_worker_threads, "rpc")
        self._deadlines = _Deadlines(self._expire)
        self._closed = False
        self.started = threading.Event()            # calls of others wait for that
        self.gone: set[int] = set()                 # workers that have hung up
        self._start(name, rank)

    def _start(self, name: str, rank: int) -> None:
        address = own_address(self.store, rank, self._world_size or 1, _chosen_address())
        self._server = listen(address, 128)
        self._port = self._server.getsockname()[1]
        if self._table.add("secret/asked", 1) == 1:
            self._table.set("secret", secrets.token_hex(16))
        self._secret = self._table.get("secret")
        self._table.set(f"id/{rank}", f"{address} {self._port} {name}")
        if self._table.add(f"name/{name}/taken", 1) != 1 and not self.is_static_group:
            self._refuse(name)
        self._table.set(f"name/{name}", str(rank))
        self._table.append("all", f"{rank} ")
        threading.Thread(target=self._listen, daemon=True, name="rpc_listen").start()
        if self.is_static_group:
            for other in range(self._world_size):
                self._look_up_id(other)
                if len(self._by_name) < len(self._by_id):
                    self._refuse(self._by_id[other].name)

    def _refuse(self, name: str) -> None:
        self._server.close()
        raise RuntimeError(f"RPC worker name {name} is not unique. Two workers have it.")

    # Workers --------------------------------------------------------------------------------

    def _look_up_id(self, rank: int) -> WorkerInfo:
        if rank not in self._by_id:
            host, port, name = self._table.get(f"id/{rank}").decode().split(" ", 2)
            self._addresses[rank] = host, int(port)
            self._by_id[rank] = self._by_name[name] = WorkerInfo(name, rank)
        return self._by_id[rank]

    def get_worker_info(self, worker: str | int | None = None) -> WorkerInfo:
        """A worker by name or number, this one by default."""
        if worker is None:
            return self._me
        found = self._by_name.get(worker) if isinstance(worker, str) else self._by_id.get(worker)
        if found is not None:
            return found
        key = f"name/{worker}" if isinstance(worker, str) else f"id/{worker}"
        if not self.is_static_group and self._table.check([key]):
            rank = int(self._table.get(key)) if isinstance(worker, str) else worker
            return self._look_up_id(rank)
        kind = "name" if isinstance(worker, str) else "id"
        raise RuntimeError(f"name:{self._me.name},rank:{self._me.id} could not find destination "
                           f"{kind} {worker}")

    def get_worker_infos(self) -> list[WorkerInfo]:
        """All workers."""
        if not self.is_static_group:
            for rank in self._table.get("all").split():
                self._look_up_id(int(rank))
        return [self._by_id[rank] for rank in sorted(self._by_id)]

    def _get_device_map(self, worker: WorkerInfo) -> dict[Any, Any]:
        return self._options.device_maps.get(worker.name, {})

    def _get_backend_options(self) -> Any:
        return self._options

    def get_debug_info(self) -> dict[str, str]:
        """Numbers about the agent."""
        return {**self.get_metrics(), "agent.server_active_async_calls": "0"}

    def get_metrics(self) -> dict[str, str]:
        """Numbers about the agent."""
        return {"agent.client_active_calls": str(len(self._pending)),
                "agent.server_active_calls": str(self._running),
                "agent.thread_pool_size": str(self._options.num_worker_threads),
                "agent.num_idle_threads":
                    str(max(0, self._options.num_worker_threads - self._running))}

    # Calling --------------------------------------------------------------------------------

    def call(self, to: WorkerInfo, function: Callable[..., Any], args: tuple[Any, ...] = (),
             kwargs: dict[str, Any] | None = None, timeout: float = UNSET_RPC_TIMEOUT,
             recorded: bool = True) -> Future[Any]:
        """A future of what a function gives in a worker. What is `recorded` belongs to the
        distributed autograd context of this thread."""
        data, tensors = serialize(PythonUDF(function, args, kwargs or {}))
        context = None
        if recorded:
            context, tensors = recording.attach(tensors, to.id)
        future: Future[Any] = Future()
        with self._lock:
            number, self._next_number = self._next_number, self._next_number + 1
            self._pending[number] = future, to.id
        seconds = self._options.rpc_timeout if timeout == UNSET_RPC_TIMEOUT else timeout
        if seconds > 0:
            self._deadlines.add(number, seconds)
        # what the call refers to stays until it is answered
        future._kept = args, kwargs                     # type: ignore[attr-defined]
        try:
            self._send(to.id, ("call", number, data, context), tensors)
        except OSError as error:
            self._answer(number, RuntimeError(f"RPC to {to} failed: {error}"))
        return future

    def _expire(self, number: int, seconds: float) -> None:
        self._answer(number, RuntimeError(_TIMEOUT_ERROR.format(round(seconds * 1000))))

    def _answer(self, number: int, error: Exception | None, value: Any = None) -> None:
        """The value or the error of a call has come, unless it is too late."""
        with self._lock:
            future, _ = self._pending.pop(number, (None, None))
        if future is not None:
            future._kept = None                         # type: ignore[attr-defined]
            if error is None:
                future.set_result(value)
            else:
                future._fail(error)

    def _send(self, rank: int, head: Any, tensors: list[Any]) -> None:
        if rank == self._me.id:
            # as if it had travelled: what is sent is a copy
            head = pickle.loads(pickle.dumps(head))
            grads = [t.requires_grad and t.is_leaf for t in tensors]
            copies = [t.detach().clone().requires_grad_(g) for t, g in zip(tensors, grads)]
            self._receive(rank, head, copies)
            return
        link = self._link(rank)
        _write(link.connection, link.lock, head, tensors)

    def _link(self, rank: int) -> _Link:
        with self._lock:
            link = self._links.get(rank)
        if link is not None:
            return link
        self._look_up_id(rank)
        connection = socket.create_connection(self._addresses[rank], 60)
        connection.settimeout(None)
        connection.sendall(self._secret + struct.pack("!I", self._me.id))
        link = self._add(rank, connection)
        threading.Thread(target=self._read_all, args=(rank, connection), daemon=True,
                         name=f"rpc_read_{rank}").start()
        return link

    def _add(self, rank: int, connection: socket.socket) -> _Link:
        """A new connection; gives the one to write to. Where both sides have opened one at once
        both stay: the other side may write to the one that this side does not."""
        with self._lock:
            self._connections.append(connection)
            return self._links.setdefault(rank, _Link(connection))

    # Being called ---------------------------------------------------------------------------

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._welcome, args=(connection,), daemon=True).start()

    def _welcome(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError):
            connection.settimeout(60)
            greeting = read_exactly(connection, len(self._secret) + 4)
            if not secrets.compare_digest(bytes(greeting[:-4]), self._secret):
                connection.close()
                return
            connection.settimeout(None)
            rank = struct.unpack("!I", greeting[-4:])[0]
            self._add(rank, connection)
            self._read_all(rank, connection)

    def _read_all(self, rank: int, connection: socket.socket) -> None:
        try:
            while True:
                self._receive(rank, *_read(connection))
        except (OSError, EOFError):
            self._lost(rank, connection)

    def _lost(self, rank: int, connection: socket.socket) -> None:
        """A worker has hung up: what it was asked will not be answered."""
        with self._lock:
            if rank in self._links and self._links[rank].connection is connection:
                del self._links[rank]
            waiting = [number for number, (_, to) in self._pending.items() if to == rank]
        if not self._closed:
            self.gone.add(rank)
            for number in waiting:
                self._answer(number, RuntimeError(
                    f"RPC to {self._by_id.get(rank, rank)} failed: eof"))

    def _receive(self, rank: int, head: Any, tensors: list[Any]) -> None:
        kind, number, data, context = head
        if self._closed:
            return
        with self._lock:
            self._running += 1
            if kind == "value" and number in self._pending:         # whoever hangs up now
                self._pending[number] = self._pending[number][0], -1
        if kind == "call":
            self._pool.submit(self._run, rank, number, data, context, tensors)
        else:
            self._pool.submit(self._take, rank, number, data, context, tensors)

    def _run(self, rank: int, number: int, data: bytes, context: Any, tensors: list[Any]) -> None:
        """Run a call when the references in it are known to their owners, and answer it."""
        self.started.wait()
        call: Any
        try:
            with recording.within(context):
                call, unknown = deserialize_call(data, recording.receive(
                    tensors, context, rank, send_gradients))
        except Exception as error:
            call, unknown = error, []
        if not unknown:
            self._execute(rank, number, call, context)
            return
        known = collect_all(unknown)
        known._when_done(lambda: self._pool.submit(
            self._execute, rank, number, known._error or call, context))

    def _execute(self, rank: int, number: int, call: Any, context: Any) -> None:
        def answer(value: Any) -> None:
            try:
                with recording.within(context):
                    self._reply(rank, number, value)
            finally:
                self._done()
        try:
            with recording.within(context):
                if isinstance(call, Exception):
                    raise call
                value = call.func(*call.args, **call.kwargs)
                if hasattr(call.func, "_wrapped_async_rpc_function"):
                    if not isinstance(value, Future):
                        raise RuntimeError(
                            "Functions decorated with @rpc.async_function must return a "
                            "torch.futures.Future object, but got "
                            f"{type(value).__module__}.{type(value).__qualname__}")
        except Exception as error:
            value = describe_error(error)
        if isinstance(value, Future) and not isinstance(value, RemoteException) and (
                getattr(call.func, "_answers_later", False)
                or hasattr(call.func, "_wrapped_async_rpc_function")):
            value._when_done(lambda: self._pool.submit(answer, _outcome(value)))
        else:
            answer(value)

    def _done(self) -> None:
        with self._lock:
            self._running -= 1

    def _reply(self, rank: int, number: int, value: Any) -> None:
        try:
            data, tensors = serialize(value)
        except Exception as error:
            data, tensors = serialize(describe_error(error))
        context, tensors = recording.attach(tensors, rank)
        with contextlib.suppress(OSError):          # who asked may have gone
            self._send(rank, ("value", number, data, context), tensors)

    def _take(self, rank: int, number: int, data: bytes, context: Any, tensors: list[Any]
              ) -> None:
        """A value has come."""
        try:
            value = deserialize(data, recording.receive(tensors, context, rank, send_gradients))
            if isinstance(value, AttributeError):
                raise value
            _handle_exception(value)
        except Exception as error:
            self._answer(number, error)
        else:
            self._answer(number, None, value)
        finally:
            self._done()

    # Ending ---------------------------------------------------------------------------------

    def sync(self) -> None:
        """Wait until all calls of all workers are answered."""
        self.join()

    def join(self, shutdown: bool = False, timeout: float = 0) -> None:
        """Wait until no worker has calls that run; all of them have to call this."""
        size = self._world_size or len(self._table.get("all").split())
        attempt, calm = self._table.add(f"join/{self._me.id}", 1), 0
        round = 0
        end = time.monotonic() + timeout if timeout else None
        while calm < 2:
            if end is not None and time.monotonic() > end:
                raise RuntimeError("The workers have not joined in time")
            prefix = f"join/{attempt}/{round}"
            busy = len(self._pending) + self._running
            total = self._table.add(f"{prefix}/busy", busy)
            self._table.barrier(prefix, size)
            total = self._table.add(f"{prefix}/busy", 0)
            calm = calm + 1 if total == 0 else 0
            round += 1
            if total:
                time.sleep(0.005)

    def shutdown(self) -> None:
        """Hang up, as soon as what runs has answered, but within a second."""
        end = time.monotonic() + 1
        while self._running and time.monotonic() < end:
            time.sleep(0.001)
        self._closed = True
        self._deadlines.stop()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        with self._lock:
            connections, self._connections, self._links = self._connections, [], {}
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._pool.shutdown(wait=False)


def _outcome(future: Future[Any]) -> Any:
    try:
        return future.value()
    except Exception as error:
        # one that was raised before is sent on as it is
        return getattr(error, "_raised_remotely", None) or describe_error(error)
