"""Calling functions in other workers."""
from __future__ import annotations

import collections
import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, ParamSpec, TypeVar

from flambeau.distributed.rpc import rref as _rref
from flambeau.distributed.rpc.constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT
from flambeau.distributed.rpc.current import (
    WorkerInfo,
    _get_current_rpc_agent,  # noqa: F401  # looked for here
    _is_current_rpc_agent_set,
    _reset_current_rpc_agent,
    _set_and_start_rpc_agent,
    current_agent,
)
from flambeau.distributed.rpc.internal import _internal_rpc_pickler
from flambeau.distributed.rpc.rref import PyRRef
from flambeau.futures import Future

__all__ = ["AllGatherStates", "RRef", "get_worker_info", "method_factory", "new_method", "remote",
           "rpc_async", "rpc_sync", "shutdown"]

T = TypeVar("T")
_P = ParamSpec("_P")
_R = TypeVar("_R")
_ignore_rref_leak = True
_default_pickler = _internal_rpc_pickler


class RRef(PyRRef, Generic[T]):
    """A reference to a value that some process owns: `RRef(value)` makes this process the owner,
    `rpc.remote` another. `to_here()` fetches a copy, `rpc_sync().method(...)` calls a method
    where the value is. The owner keeps it as long as there are references."""


def method_factory(method_name: str, docstring: str | None) -> Any:
    """A method of `RRef` that does what the one of its base does."""
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(super(RRef, self), method_name)(*args, **kwargs)
    method.__name__, method.__doc__ = method_name, docstring
    return method


new_method = method_factory("to_here", PyRRef.to_here.__doc__)


def _require_initialized(func: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorates functions that need `init_rpc` first."""
    @functools.wraps(func)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not _is_current_rpc_agent_set():
            raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc "
                               "first.")
        return func(*args, **kwargs)
    return wrapper


@contextlib.contextmanager
def _use_rpc_pickler(rpc_pickler: Any) -> Iterator[None]:
    """Inside, another pickler is the default one."""
    global _default_pickler
    before, _default_pickler = _default_pickler, rpc_pickler
    try:
        yield
    finally:
        _default_pickler = before


# All workers together -----------------------------------------------------------------------


class AllGatherStates:
    """What the leader of a gathering has, and whether all have got it."""

    def __init__(self) -> None:
        self.gathered_objects: dict[str, Any] = {}
        self.proceed_signal = threading.Event()


_ALL_WORKER_NAMES: set[str] = set()
_all_gather_dict_lock = threading.RLock()
_all_gather_sequence_id: dict[str, int] = {}
_all_gather_sequence_id_to_states: collections.defaultdict[str, AllGatherStates] = \
    collections.defaultdict(AllGatherStates)


def _init_rpc_states(agent: Any) -> None:
    _ALL_WORKER_NAMES.clear()
    _ALL_WORKER_NAMES.update(info.name for info in agent.get_worker_infos())
    if not _is_current_rpc_agent_set():
        _set_and_start_rpc_agent(agent)


def _gather_to_leader(sequence_id: str, worker_name: str, obj: Any,
                      worker_names: set[str] | None = None) -> None:
    with _all_gather_dict_lock:
        names = worker_names or _ALL_WORKER_NAMES
        if worker_name not in names:
            raise AssertionError(f"{worker_name} is not expected by leader.")
        states = _all_gather_sequence_id_to_states[sequence_id]
        if worker_name in states.gathered_objects:
            raise AssertionError(f"{worker_name} reported intent sequence id {sequence_id} twice. ")
        states.gathered_objects[worker_name] = obj
        if names == set(states.gathered_objects):
            states.proceed_signal.set()


def _broadcast_to_followers(sequence_id: str, objects_map: dict[str, Any]) -> None:
    with _all_gather_dict_lock:
        states = _all_gather_sequence_id_to_states[sequence_id]
    if states.proceed_signal.is_set():
        raise AssertionError(f"Termination signal sequence id {sequence_id} got set twice.")
    states.gathered_objects = objects_map
    states.proceed_signal.set()


@_require_initialized
def _all_gather(obj: Any, worker_names: set[str] | None = None,
                timeout: float = UNSET_RPC_TIMEOUT) -> dict[str, Any]:
    """The objects of all workers (or of those named), by name; all of them have to call this."""
    names = set(worker_names) if worker_names else set(_ALL_WORKER_NAMES)
    agent, leader = current_agent(), min(names)
    me = agent.get_worker_info().name
    with _all_gather_dict_lock:
        key = "".join(sorted(names))
        count = _all_gather_sequence_id.get(key, 0)
        _all_gather_sequence_id[key] = count + 1
        sequence_id = f"{key}{count}"
    seconds = get_rpc_timeout() if timeout == UNSET_RPC_TIMEOUT else timeout
    if me == leader:
        _gather_to_leader(sequence_id, me, obj, names)
    else:
        rpc_sync(leader, _gather_to_leader, (sequence_id, me, obj, names), timeout=timeout)
    with _all_gather_dict_lock:
        states = _all_gather_sequence_id_to_states[sequence_id]
    _wait_for_all(states.proceed_signal, names, leader, seconds)
    if me == leader:
        told = [rpc_async(name, _broadcast_to_followers, (sequence_id, states.gathered_objects),
                          timeout=timeout) for name in sorted(names - {me})]
        failures = [error for error in map(_failure, told) if error is not None]
        if failures:
            raise RuntimeError(f"Some of {sorted(names - {me})} have failed or timed out in "
                               f"_all_gather after {seconds:.2f} seconds. The first error was: "
                               f"{failures[0]}") from failures[0]
    with _all_gather_dict_lock:
        del _all_gather_sequence_id_to_states[sequence_id]
    return states.gathered_objects


def _failure(future: Future[Any]) -> Exception | None:
    try:
        future.wait()
    except Exception as error:
        return error
    return None


def _wait_for_all(signal: threading.Event, names: set[str], leader: str, seconds: float) -> None:
    agent = current_agent()
    end = time.monotonic() + seconds if seconds else float("inf")
    while not signal.wait(min(0.1, max(0.0, end - time.monotonic()))):
        gone = names & {info.name for info in agent.get_worker_infos() if info.id in agent.gone}
        if gone:
            raise RuntimeError(f"RPC workers {sorted(gone)} have gone, while others wait for them")
        if time.monotonic() >= end:
            raise RuntimeError(f"{sorted(names)} have not all reported to {leader}: timed out in "
                               f"_all_gather after {seconds:.2f} seconds")


@_require_initialized
def _barrier(worker_names: set[str]) -> None:
    """Wait until these workers have called this."""
    _all_gather(None, set(worker_names))


@_require_initialized
def _wait_all_workers(timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Wait until all workers have called this."""
    _all_gather(None, timeout=timeout)


_thread_local_var = threading.local()


@contextlib.contextmanager
def _wait_all() -> Iterator[None]:
    """Waits, at its end, for all futures of `rpc_async` that were made inside."""
    _thread_local_var.future_list = []
    try:
        yield
    finally:
        futures = _thread_local_var.future_list
        del _thread_local_var.future_list
    for future in futures:
        future.wait()


@_require_initialized
def shutdown(graceful: bool = True, timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Leave RPC: gracefully, when all workers have come here and no call runs any more; else at
    once.

    Args:
        graceful: whether to wait for the others.
        timeout: how many seconds; 0 means no limit.
    """
    agent = current_agent()
    try:
        if graceful:
            try:
                if agent.is_static_group:
                    _wait_all_workers(timeout)
                    _delete_all_user_and_unforked_owner_rrefs()
                    agent.join(shutdown=True, timeout=timeout)
            except RuntimeError:
                agent._closed = True
                raise
    finally:
        _finalize_shutdown()


def _delete_all_user_and_unforked_owner_rrefs() -> None:
    """Drop all references of this process to values of others."""
    _rref.delete_users()


def _finalize_shutdown() -> None:
    agent = current_agent()
    try:
        if not _ignore_rref_leak:
            _rref.check_leaks()
    finally:
        with contextlib.suppress(OSError):
            agent.shutdown()
        _reset_current_rpc_agent()
        _rref.start()
        _all_gather_sequence_id.clear()
        _all_gather_sequence_id_to_states.clear()


@_require_initialized
def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """A worker by name, this one by default."""
    return current_agent().get_worker_info(worker_name)


def _to_worker_info(to: WorkerInfo | str | int) -> WorkerInfo:
    if isinstance(to, WorkerInfo):
        return to
    if isinstance(to, str | int):
        return current_agent().get_worker_info(to)
    raise ValueError(f"Cannot get WorkerInfo from name {to}")


def get_rpc_timeout() -> float:
    """Seconds that a call may take by default."""
    return current_agent()._options.rpc_timeout


def _set_rpc_timeout(rpc_timeout: float) -> None:
    current_agent()._options.rpc_timeout = rpc_timeout


# Calls --------------------------------------------------------------------------------------


def _check_callable(func: Any) -> None:
    if not callable(func):
        raise TypeError("function should be callable.")


def _invoke_rpc(to: Any, func: Any, rpc_type: Any, args: Any = None, kwargs: Any = None,
                rpc_timeout: float = UNSET_RPC_TIMEOUT) -> Future[Any]:
    _check_callable(func)
    return current_agent().call(_to_worker_info(to), func, tuple(args or ()), kwargs, rpc_timeout)


@_require_initialized
def rpc_sync(to: WorkerInfo | str | int, func: Callable[..., Any], args: Any = None,
             kwargs: dict[str, Any] | None = None, timeout: float = UNSET_RPC_TIMEOUT) -> Any:
    """Call a function in a worker, and wait for what it returns.

    Args:
        to: the worker, by name, number or `WorkerInfo`.
        func: a function that the worker can import.
        args: its arguments; tensors arrive as copies, on the CPU.
        kwargs: its arguments by name.
        timeout: seconds that it may take; 0 means no limit, -1 the one of `init_rpc`.

    >>> rpc.rpc_sync("worker1", flambeau.add, args=(flambeau.ones(2), 3))     # doctest: +SKIP
    tensor([4., 4.])
    """
    return _invoke_rpc(to, func, None, args, kwargs, timeout).wait()


@_require_initialized
def rpc_async(to: WorkerInfo | str | int, func: Callable[..., Any], args: Any = None,
              kwargs: dict[str, Any] | None = None, timeout: float = UNSET_RPC_TIMEOUT
              ) -> Future[Any]:
    """Call a function in a worker; gives a future of what it returns. Arguments as for
    `rpc_sync`."""
    future = _invoke_rpc(to, func, None, args, kwargs, timeout)
    if hasattr(_thread_local_var, "future_list"):
        _thread_local_var.future_list.append(future)
    return future


@_require_initialized
def remote(to: WorkerInfo | str | int, func: Callable[..., Any], args: Any = None,
           kwargs: dict[str, Any] | None = None, timeout: float = UNSET_RPC_TIMEOUT) -> RRef[Any]:
    """Call a function in a worker, which keeps what it returns; gives a reference to that.
    Arguments as for `rpc_sync`."""
    _check_callable(func)
    return _rref.make_remote(_to_worker_info(to), func, tuple(args or ()), kwargs, timeout)


def _rref_typeof_on_owner(rref: RRef[Any], blocking: bool = True) -> Any:
    """The type of the value, at its owner."""
    return rref._get_type(blocking=blocking)


def _rref_typeof_on_user(rref: RRef[Any], timeout: float = UNSET_RPC_TIMEOUT,
                         blocking: bool = True) -> Any:
    """The type of the value, asked of its owner."""
    return rref._get_type(timeout, blocking)
