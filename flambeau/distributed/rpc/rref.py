"""Remote references: handles of values that live in the process that owns them.

Each handle in another process is a fork with a number of its own. The owner keeps a value as long
as it knows of forks; who drops a fork tells it. When a user passes a reference on to a third
process, it holds its own fork until the owner knows of the new one.
"""
from __future__ import annotations

import itertools
import queue
import threading
import weakref
from typing import Any, NamedTuple

from flambeau.distributed.rpc.calls import (
    PythonUDF,
    RemoteException,
    _handle_exception,
    _run_function,
)
from flambeau.distributed.rpc.current import WorkerInfo, answers_later, current_agent, when_done
from flambeau.futures import Future


class GloballyUniqueId(NamedTuple):
    """A number that the process `created_on` gave."""

    created_on: int
    local_id: int

    def __str__(self) -> str:
        return f"GloballyUniqueId(created_on={self.created_on}, local_id={self.local_id})"


class _Owned:
    """A value at its owner, or the error that came instead."""

    def __init__(self, rref_id: GloballyUniqueId):
        self.rref_id = rref_id
        self.value: Future[Any] = Future()


class _Fork:
    """A handle of a value that another process owns."""

    def __init__(self, owner: WorkerInfo, rref_id: GloballyUniqueId, fork_id: GloballyUniqueId):
        self.owner, self.rref_id, self.fork_id = owner, rref_id, fork_id
        self.confirmed: Future[Any] = Future()          # the owner knows of it
        self.kind: Future[Any] | None = None            # the type of the value, once asked for
        self.drop = weakref.finalize(self, _dropped.put, (owner, rref_id, fork_id))
        self.drop.atexit = False
        _context.users.add(self)

    def check(self, action: str) -> None:
        """Raise if RPC has ended since."""
        if not self.drop.alive:
            raise RuntimeError(f"UserRRef(RRefId = {self.rref_id}, ForkId = {self.fork_id}) has "
                               f"been deleted. Cannot call {action} after deletion.")


class _Context:
    """What this process knows of references."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.numbers = itertools.count()
        self.owned: dict[GloballyUniqueId, _Owned] = {}
        self.forks: dict[GloballyUniqueId, set[GloballyUniqueId]] = {}
        self.dropped_early: set[GloballyUniqueId] = set()   # before it was known that there are any
        self.announced: dict[GloballyUniqueId, Future[_Owned]] = {}     # to be owned soon
        self.users: weakref.WeakSet[_Fork] = weakref.WeakSet()
        self.pending_users: set[_Fork] = set()
        self.pending_children: dict[GloballyUniqueId, _Fork] = {}

    def new_id(self) -> GloballyUniqueId:
        return GloballyUniqueId(current_agent().get_worker_info().id, next(self.numbers))

    def own(self, rref_id: GloballyUniqueId) -> _Owned:
        """The value of that number, which may be about to be made."""
        with self.lock:
            found = self.owned.get(rref_id)
            if found is None:
                found = self.owned[rref_id] = _Owned(rref_id)
            return found


_context = _Context()
_dropped: queue.SimpleQueue[Any] = queue.SimpleQueue()  # forks that nobody holds any more
_dropper: threading.Thread | None = None


def start() -> None:
    """Begin with no references; a thread tells owners of forks that were dropped."""
    global _context, _dropper
    _context = _Context()
    if _dropper is None or not _dropper.is_alive():
        _dropper = threading.Thread(target=_tell_owners, daemon=True, name="rpc_rrefs")
        _dropper.start()


def _tell_owners() -> None:
    while True:
        owner, rref_id, fork_id = _dropped.get()
        try:
            current_agent().call(owner, _delete_fork, (rref_id, fork_id), recorded=False)
        except Exception:           # RPC has ended, and all references with it
            continue


def delete_users() -> None:
    """Drop all references of this process to values of others, as RPC ends."""
    for fork in list(_context.users):
        fork.drop()
    while not _dropped.empty():
        threading.Event().wait(0.001)


def check_leaks() -> None:
    """Raise if another process may still refer to a value of this one."""
    leaks = [(rref_id, fork_id) for rref_id, forks in _context.forks.items() for fork_id in forks]
    if leaks:
        raise RuntimeError(
            "Leaking RRefs: " + ", ".join(f"{rref_id} with fork Id {fork_id}"
                                          for rref_id, fork_id in leaks) +
            ". Please make sure that all other processes have dropped theirs before this one "
            "shuts down.")


# What owners are told -----------------------------------------------------------------------


def _delete_fork(rref_id: GloballyUniqueId, fork_id: GloballyUniqueId) -> None:
    with _context.lock:
        forks = _context.forks.get(rref_id, set())
        if fork_id not in forks:            # messages may overtake each other
            _context.dropped_early.add(fork_id)
            return
        forks.discard(fork_id)
        if not forks:
            _forget(rref_id)


def _forget(rref_id: GloballyUniqueId) -> None:
    _context.forks.pop(rref_id, None)
    _context.owned.pop(rref_id, None)


def _add_fork(rref_id: GloballyUniqueId, fork_id: GloballyUniqueId) -> None:
    with _context.lock:
        if fork_id in _context.dropped_early:
            _context.dropped_early.discard(fork_id)
            if not _context.forks.get(rref_id):
                _forget(rref_id)
            return
        _context.own(rref_id)
        _context.forks.setdefault(rref_id, set()).add(fork_id)


@answers_later
def _create(rref_id: GloballyUniqueId, fork_id: GloballyUniqueId, function: Any, args: Any,
            kwargs: Any) -> Future[Any]:
    """Call a function, whose value this process is to own. Answers that it is known, with the
    error if there was one."""
    _add_fork(rref_id, fork_id)
    owned = _context.own(rref_id)
    fill(owned, function, args, kwargs)
    return when_done(owned.value, lambda value: None)


def fill(owned: _Owned, function: Any, args: Any, kwargs: Any) -> None:
    """Have `owned` hold what a function gives."""
    value = _run_function(PythonUDF(function, args, kwargs))
    if isinstance(value, RemoteException):
        owned.value.set_exception(_as_error(value))
    elif hasattr(function, "_wrapped_async_rpc_function") and isinstance(value, Future):
        value._when_done(lambda: owned.value._complete(value._value, value._error))
    else:
        owned.value.set_result(value)


def _as_error(raised: Any) -> Exception:
    try:
        _handle_exception(raised)
    except Exception as error:
        error._raised_remotely = raised             # type: ignore[attr-defined]
        return error
    raise AssertionError("no error")


@answers_later
def _fetch(rref_id: GloballyUniqueId) -> Future[Any]:
    return _context.own(rref_id).value


@answers_later
def _fetch_type(rref_id: GloballyUniqueId) -> Future[Any]:
    return when_done(_context.own(rref_id).value, type)


def _accept_child(fork_id: GloballyUniqueId) -> None:
    """The owner knows of a fork that was made here for another process."""
    with _context.lock:
        _context.pending_children.pop(fork_id, None)


# Handles ------------------------------------------------------------------------------------


class PyRRef:
    """A reference to a value that some process owns: `RRef(value)` makes this process the owner,
    `rpc.remote` another."""

    def __init__(self, value: Any, type_hint: Any = None):
        current_agent()
        self._fork: _Fork | None = None
        self._owned = _Owned(_context.new_id())
        self._owned.value.set_result(value)
        self._made: Future[Any] | None = None

    @classmethod
    def _of(cls, owned: _Owned | None = None, fork: _Fork | None = None,
            made: Future[Any] | None = None) -> Any:
        from flambeau.distributed.rpc.api import RRef
        found = object.__new__(RRef)
        found._owned, found._fork, found._made = owned, fork, made
        return found

    @property
    def _rref_id(self) -> GloballyUniqueId:
        return (self._owned or self._fork).rref_id

    def is_owner(self) -> bool:
        """Does this process own the value?"""
        return self._owned is not None

    def confirmed_by_owner(self) -> bool:
        """Does the owner know of this reference?"""
        return self.is_owner() or self._fork.confirmed.done()

    def owner(self) -> WorkerInfo:
        """The worker that owns the value."""
        return current_agent().get_worker_info() if self.is_owner() else self._fork.owner

    def owner_name(self) -> str:
        """The name of the worker that owns the value."""
        return self.owner().name

    def to_here(self, timeout: float = -1.0) -> Any:
        """A copy of the value; at the owner the value."""
        if self.is_owner():
            self._check_creation()
            return self._owned.value.wait()
        self._fork.check("to_here() on it")
        self._raise_failure()
        value = current_agent().call(self._fork.owner, _fetch, (self._rref_id,),
                                     timeout=timeout).wait()
        _confirm(self._fork)
        return value

    def _raise_failure(self) -> None:
        self._check_creation()
        if self._made is not None and self._made.done():
            self._made.value()

    def _check_creation(self) -> None:
        """Raise if the message that was to create the value may not have come to its owner."""
        if self._made is not None and self._made.done() and \
                str(self._made._error).startswith(("RPCErr:1:", "RPCErr:2:")):
            raise RuntimeError(
                "RRef creation via rpc.remote() timed out, and it is possible that the RRef "
                "on the owner node does not exist.") from self._made._error

    def local_value(self) -> Any:
        """The value, at its owner."""
        if not self.is_owner():
            raise RuntimeError(
                f"For UserRRef(rref_id={self._rref_id}, fork_id={self._fork.fork_id}), can't call "
                f"localValue() on user {current_agent().get_worker_info()}. Call it on owner "
                f"{self._fork.owner}")
        return self._owned.value.wait()

    def rpc_sync(self, timeout: float = -1.0) -> Any:
        """The value's methods, called where it is: `rref.rpc_sync().method(...)`."""
        return self._proxy("rpc_sync", timeout)

    def rpc_async(self, timeout: float = -1.0) -> Any:
        """The same, giving futures."""
        return self._proxy("rpc_async", timeout)

    def remote(self, timeout: float = -1.0) -> Any:
        """The same, giving references."""
        return self._proxy("remote", timeout)

    def _proxy(self, name: str, timeout: float) -> Any:
        from flambeau.distributed.rpc import api
        from flambeau.distributed.rpc.rref_proxy import RRefProxy
        return RRefProxy(self, getattr(api, name), timeout)

    def _get_type(self, timeout: float = -1.0, blocking: bool = True) -> Any:
        """The type of the value, or a future of it."""
        if self.is_owner():
            found = when_done(self._owned.value, type)
        else:
            if self._fork.kind is None:
                self._fork.kind = current_agent().call(
                    self._fork.owner, _fetch_type, (self._rref_id,), timeout=timeout)
            found = self._fork.kind
        return found.wait() if blocking else found

    def _get_future(self) -> Future[Any]:
        """Done when the owner has made the value."""
        return self._made or (self._owned.value if self.is_owner() else self._fork.confirmed)

    _get_profiling_future = _get_future

    def _set_profiling_future(self, future: Future[Any]) -> None:
        """Has no effect."""

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Propagate gradients from the value, a tensor, within a distributed autograd context;
        at the owner, without one too."""
        if self.is_owner():
            return _backward(self._owned, dist_autograd_ctx_id, retain_graph)
        if dist_autograd_ctx_id == -1:
            raise RuntimeError("User RRefs require 'dist_autograd_ctx_id' to be specified")
        current_agent().call(self._fork.owner, _backward_by_id, (
            self._rref_id, dist_autograd_ctx_id, retain_graph)).wait()

    def _serialize(self) -> tuple[Any, ...]:
        """A new fork, for the process that this goes to."""
        self._check_creation()
        if self._fork is not None:
            self._fork.check("fork an UserRRef")
        fork_id, here = _context.new_id(), current_agent().get_worker_info().id
        if self._owned is not None:
            with _context.lock:
                _context.owned[self._rref_id] = self._owned
            _add_fork(self._rref_id, fork_id)
        else:
            _context.pending_children[fork_id] = self._fork
        return self.owner().id, tuple(self._rref_id), tuple(fork_id), here

    @staticmethod
    def _deserialize(fork: tuple[Any, ...]) -> Any:
        return receive_fork(fork)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("Can not pickle rref in python pickler, rref can only be pickled when "
                           "using RPC")

    def __repr__(self) -> str:
        if self.is_owner():
            return f"OwnerRRef({self._rref_id})"
        return f"UserRRef(RRefId = {self._rref_id}, ForkId = {self._fork.fork_id})"

    __str__ = __repr__


def receive_fork(fork: tuple[Any, ...]) -> Any:
    """The reference that has come from another process."""
    agent = current_agent()
    owner_id, rref_id, fork_id, parent = fork
    rref_id, fork_id = GloballyUniqueId(*rref_id), GloballyUniqueId(*fork_id)
    if owner_id == agent.get_worker_info().id:
        owned = _context.own(rref_id)
        if parent == owner_id:
            _delete_fork(rref_id, fork_id)          # the fork has come home
        else:
            agent.call(agent.get_worker_info(parent), _accept_child, (fork_id,), recorded=False)
        return PyRRef._of(owned)
    found = _Fork(agent.get_worker_info(owner_id), rref_id, fork_id)
    if parent == owner_id:
        found.confirmed.set_result(None)
    else:
        _context.pending_users.add(found)
        told = agent.call(found.owner, _add_fork, (rref_id, fork_id), recorded=False)
        told._when_done(lambda: _confirm(found, parent))
    return PyRRef._of(fork=found)


def _confirm(fork: _Fork, parent: int | None = None) -> None:
    _context.pending_users.discard(fork)
    if not fork.confirmed.done():
        fork.confirmed.set_result(None)
    if parent is not None:
        agent = current_agent()
        agent.call(agent.get_worker_info(parent), _accept_child, (fork.fork_id,),
                   recorded=False)


def make_remote(to: WorkerInfo, function: Any, args: Any, kwargs: Any, timeout: float) -> Any:
    """A reference to what a function gives in a worker, which owns it."""
    agent = current_agent()
    rref_id = _context.new_id()
    if to.id == agent.get_worker_info().id:
        owned = _context.own(rref_id)
        if agent.calls_itself:
            made = agent.call(to, _create, (rref_id, rref_id, function, args, kwargs or {}),
                              timeout=timeout)
            made._when_done(lambda: _delete_fork(rref_id, rref_id))
            return PyRRef._of(owned, made=made)
        _add_fork(rref_id, rref_id)
        agent._pool.submit(_fill_own, owned, function, args, kwargs)
        return PyRRef._of(owned)
    fork = _Fork(to, rref_id, _context.new_id())
    _context.pending_users.add(fork)
    made = agent.call(to, _create, (rref_id, fork.fork_id, function, args, kwargs or {}),
                      timeout=timeout)
    made._when_done(lambda: _confirm(fork))
    return PyRRef._of(fork=fork, made=made)


def _fill_own(owned: _Owned, function: Any, args: Any, kwargs: Any) -> None:
    fill(owned, function, args, kwargs or {})
    _delete_fork(owned.rref_id, owned.rref_id)


def _backward_by_id(rref_id: GloballyUniqueId, context_id: int, retain_graph: bool) -> None:
    _backward(_context.own(rref_id), context_id, retain_graph)


def _backward(owned: _Owned, context_id: int, retain_graph: bool) -> None:
    from flambeau import Tensor
    value = owned.value.wait()
    if not isinstance(value, Tensor):
        raise RuntimeError("RRef should contain a tensor for .backward()")
    if context_id == -1:
        value.backward(retain_graph=retain_graph)
    else:
        from flambeau.distributed import autograd
        autograd.backward(context_id, [value], retain_graph)


def describe() -> dict[str, str]:
    """Numbers about references."""
    return {"num_owner_rrefs": str(len(_context.owned)),
            "num_pending_futures": "0",
            "num_pending_users": str(len(_context.pending_users)),
            "num_forks": str(sum(map(len, _context.forks.values())))}
