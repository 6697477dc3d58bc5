"""Rendezvous of nodes that come and go.

All nodes change one state, which a backend keeps: a node reads it, takes its step (`state`), and
writes it back if no other node has been faster; else it tries again. A round is complete when all
nodes are there, or enough of them and no other comes. Signs of life tell which nodes are dead.
"""
from __future__ import annotations

import contextlib
import inspect
import logging
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any

from flambeau.distributed._c10d.stores import PrefixStore, Store, TCPStore
from flambeau.distributed.elastic.events import NodeState, construct_and_record_rdzv_event
from flambeau.distributed.elastic.rendezvous.api import (
    RendezvousError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
)
from flambeau.distributed.elastic.rendezvous.state import (
    RendezvousSettings,
    RendezvousTimeout,
    Step,
    _NodeDesc,
    _NodeDescGenerator,
    _RendezvousState,
    close,
    join,
    keep_alive,
    leave,
)
from flambeau.distributed.elastic.rendezvous.utils import _delay, _PeriodicTimer
from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["DynamicRendezvousHandler", "RendezvousBackend", "RendezvousSettings",
           "RendezvousTimeout", "create_handler"]

logger = get_logger(__name__)


def get_method_name(depth: int = 2) -> str:
    """The name of the function that is running, `depth` calls up."""
    stack = inspect.stack()
    return stack[depth].function if len(stack) > depth else "no_method_name"


class RendezvousBackend(ABC):
    """Keeps a state; the token that comes with it changes whenever it changes."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the backend."""

    @abstractmethod
    def get_state(self) -> tuple[bytes, Any] | None:
        """The state and its token; None if there is none yet."""

    @abstractmethod
    def set_state(self, state: bytes, token: Any | None = None
                  ) -> tuple[bytes, Any, bool] | None:
        """Set the state if it is still the one of that token (None: if there is none): the state
        that is there now, its token, and whether it was set."""


class _BackendRendezvousStateHolder:
    """The state as a node sees it, and the steps that it takes."""

    def __init__(self, backend: RendezvousBackend, settings: RendezvousSettings,
                 cache_duration: int = 1):
        self.backend, self._settings, self._cache_duration = backend, settings, cache_duration
        self.state, self._token = _RendezvousState(), None
        self._last_sync = -1.0
        self._lock = threading.RLock()

    def sync(self) -> None:
        """Read the state, unless that was done just now."""
        with self._lock:
            if self._last_sync >= max(time.monotonic() - self._cache_duration, 0):
                return
            self._take(self.backend.get_state())

    def _take(self, found: tuple[Any, ...] | None) -> None:
        self._last_sync = time.monotonic()
        if found is None:
            self.state, self._token = _RendezvousState(), None
            return
        try:
            self.state = _RendezvousState.load(found[0])
        except (ValueError, TypeError, KeyError) as error:
            raise RendezvousStateError("The rendezvous state is corrupt. See inner exception for "
                                       "details.") from error
        self._token = found[1]

    def run(self, step: Step, node: _NodeDesc, deadline: float) -> None:
        """Take a step: again and again, until it is done and written."""
        while True:
            with self._lock:
                self._take(self.backend.get_state())
                before = self.state.dump()
                self.state.remove_dead(self._settings)
                waits_for = step(self.state, node, self._settings, deadline)
                keep_alive(self.state, node, self._settings, float("inf"))
                after = self.state.dump()
                written = before == after
                if not written:
                    found = self.backend.set_state(after, self._token)
                    written = found is not None and found[2]
                    if written:
                        self._take(found)
            if written and not waits_for:
                return
            _delay((0.05, 0.15) if not written else (0.1, 0.3) if waits_for != "a place" else 1.0)


class DynamicRendezvousHandler(RendezvousHandler):
    """A node's part in a rendezvous of nodes that come and go."""

    _node_desc_generator = _NodeDescGenerator()

    @classmethod
    def from_backend(cls, run_id: str, store: Store, backend: RendezvousBackend, min_nodes: int,
                     max_nodes: int, local_addr: str | None = None,
                     timeout: RendezvousTimeout | None = None, keep_alive_interval: int = 5,
                     keep_alive_max_attempt: int = 3) -> DynamicRendezvousHandler:
        """A new node.

        Args:
            run_id: the name of the run.
            store: the store that the agents share.
            backend: keeps the state.
            min_nodes: how many nodes are enough.
            max_nodes: how many there may be.
            local_addr: the address of this node.
            timeout: how long things may take.
            keep_alive_interval: seconds between signs of life.
            keep_alive_max_attempt: a node that has missed so many is dead.
        """
        settings = RendezvousSettings(
            run_id, min_nodes, max_nodes, timeout or RendezvousTimeout(),
            timedelta(seconds=keep_alive_interval), keep_alive_max_attempt)
        return cls(cls._node_desc_generator.generate(local_addr), settings, backend.name, store,
                   _BackendRendezvousStateHolder(backend, settings))

    def __init__(self, node: _NodeDesc, settings: RendezvousSettings, backend_name: str,
                 store: Store, state_holder: _BackendRendezvousStateHolder):
        if not settings.run_id:
            raise ValueError("The run id must be a non-empty string.")
        if settings.min_nodes < 1:
            raise ValueError(f"The minimum number of nodes ({settings.min_nodes}) must be greater "
                             "than zero.")
        if settings.max_nodes < settings.min_nodes:
            raise ValueError(
                f"The maximum number of nodes ({settings.max_nodes}) must be greater than or "
                f"equal to the minimum number of nodes ({settings.min_nodes}).")
        self._this_node, self._settings, self._backend_name = node, settings, backend_name
        self._store, self._state_holder = store, state_holder
        self._heartbeat_lock = threading.Lock()
        self._keep_alive_timer: _PeriodicTimer | None = None
        self._shared_tcp_store_server: TCPStore | None = None

    @property
    def settings(self) -> RendezvousSettings:
        """What all nodes agree on."""
        return self._settings

    def get_backend(self) -> str:
        """The name of the backend."""
        return self._backend_name

    @property
    def use_agent_store(self) -> bool:
        """Do the workers use a store that an agent holds? Yes, unless
        `TORCH_DISABLE_SHARE_RDZV_TCP_STORE` is 1."""
        return os.environ.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def _record(self, message: str, node_state: NodeState = NodeState.RUNNING,
                rank: int | None = None) -> None:
        construct_and_record_rdzv_event(
            name=f"{type(self).__name__}.{get_method_name()}", run_id=self._settings.run_id,
            message=message, node_state=node_state, hostname=self._this_node.addr,
            pid=self._this_node.pid, local_id=self._this_node.local_id, rank=rank)

    @contextlib.contextmanager
    def _telling_failure(self) -> Any:
        try:
            yield
        except Exception as error:
            self._record(f"{type(error).__name__}: {error}", NodeState.FAILED)
            raise

    def next_rendezvous(self) -> RendezvousInfo:
        """Leave the round that was, and meet the others in the next."""
        message = f"The node '{self._this_node}' attempts to join the next round of the " \
                  f"rendezvous '{self._settings.run_id}'."
        self._record(message)
        logger.info(message)
        with self._telling_failure():
            self._stop_heartbeats()
            # workers of the round that was have ended: their store may go
            self._shared_tcp_store_server = None
            deadline = self._get_deadline(self._settings.timeout.join)
            self._state_holder.run(leave, self._this_node, deadline)
            self._state_holder.run(join, self._this_node, deadline)
            self._start_heartbeats()
            rank, world_size = self._get_world()
            store = self._get_store()
            place = self._publish_workers_store(rank, store)
        message = (f"The node '{self._this_node}' has joined round "
                   f"{self._state_holder.state.round} of the rendezvous "
                   f"'{self._settings.run_id}' as rank {rank} in a world of size {world_size}.")
        self._record(message, rank=rank)
        logger.info(message)
        return RendezvousInfo(store, rank, world_size, place)

    def _publish_workers_store(self, rank: int, store: Store) -> RendezvousStoreInfo:
        """Rank 0 tells where the store of the workers is. Each round has its own, so that nothing
        is left in it from workers of the round before."""
        port = None
        if rank == 0 and self.use_agent_store:
            self._shared_tcp_store_server = self._create_tcp_store_server(self._this_node.addr, 0)
            port = self._shared_tcp_store_server.port
        return RendezvousStoreInfo.build(rank, store, self._this_node.addr, port)

    def _create_tcp_store_server(self, master_addr: str, master_port: int) -> TCPStore:
        return TCPStore(master_addr, master_port, is_master=True, multi_tenant=True)

    def is_closed(self) -> bool:
        """Has the rendezvous ended for good?"""
        with self._telling_failure(), self._heartbeat_lock:
            self._state_holder.sync()
            return self._state_holder.state.closed

    def set_closed(self) -> None:
        """End the rendezvous for good."""
        with self._telling_failure(), self._heartbeat_lock:
            self._close()

    def num_nodes_waiting(self) -> int:
        """How many nodes wait to be let in, in the next round."""
        with self._telling_failure(), self._heartbeat_lock:
            self._state_holder.sync()
            return len(self._state_holder.state.wait_list)

    def get_run_id(self) -> str:
        """The name of the run."""
        return self._settings.run_id

    def shutdown(self) -> bool:
        """Close the rendezvous; did that work?"""
        self._stop_heartbeats()
        try:
            self._close()
            return True
        except RendezvousError as error:
            message = (f"The node '{self._this_node}' has failed to shutdown the rendezvous "
                       f"'{self._settings.run_id}' due to an error of type {type(error).__name__}.")
            self._record(message, NodeState.FAILED)
            logger.log(logging.WARNING, message)
            return False

    def leave(self) -> None:
        """Leave the round, so that the others need not wait for signs of life."""
        self._stop_heartbeats()
        with contextlib.suppress(RendezvousError):
            self._state_holder.run(leave, self._this_node,
                                   self._get_deadline(self._settings.timeout.heartbeat))

    def _close(self) -> None:
        self._state_holder.run(close, self._this_node,
                               self._get_deadline(self._settings.timeout.close))
        message = f"The node '{self._this_node}' has closed the rendezvous " \
                  f"'{self._settings.run_id}'."
        self._record(message, NodeState.SUCCEEDED)
        logger.info(message)

    @staticmethod
    def _keep_alive_weak(weak_self: Any) -> None:
        self = weak_self()
        if self is not None:
            self._keep_alive()

    def _keep_alive(self) -> None:
        with self._heartbeat_lock:
            try:
                self._state_holder.run(keep_alive, self._this_node,
                                       self._get_deadline(self._settings.timeout.heartbeat))
            except RendezvousError as error:
                message = (f"The node '{self._this_node}' has failed to send a keep-alive "
                           f"heartbeat to the rendezvous '{self._settings.run_id}' due to an "
                           f"error of type {type(error).__name__}.")
                self._record(message, NodeState.FAILED)
                logger.warning(message)

    def _start_heartbeats(self) -> None:
        self._keep_alive_timer = _PeriodicTimer(
            self._settings.keep_alive_interval, self._keep_alive_weak, weakref.ref(self))
        self._keep_alive_timer.set_name(
            f"RendezvousKeepAliveTimer_{self._this_node.local_id}")
        self._keep_alive_timer.start()

    def _stop_heartbeats(self) -> None:
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()
            self._keep_alive_timer = None

    def _get_world(self) -> tuple[int, int]:
        participants = self._state_holder.state.participants
        return participants[self._this_node], len(participants)

    def _get_store(self) -> Store:
        state = self._state_holder.state
        return PrefixStore(f"torch.rendezvous.{self._settings.run_id}.{state.round}", self._store)

    def _get_deadline(self, timeout: timedelta) -> float:
        return time.monotonic() + timeout.total_seconds()


def _get_timeout(params: RendezvousParameters, key: str) -> timedelta | None:
    seconds = params.get_as_int(key + "_timeout")
    return None if seconds is None else timedelta(seconds=seconds)


def create_handler(store: Store, backend: RendezvousBackend, params: RendezvousParameters
                   ) -> DynamicRendezvousHandler:
    """A node for these parameters.

    Options: `join_timeout`, `last_call_timeout`, `close_timeout`, `keep_alive_interval` in
    seconds, `keep_alive_max_attempt`.
    """
    try:
        timeout = RendezvousTimeout(_get_timeout(params, "join"),
                                    _get_timeout(params, "last_call"),
                                    _get_timeout(params, "close"))
        interval = params.get_as_int("keep_alive_interval", 5)
        attempts = params.get_as_int("keep_alive_max_attempt", 3)
        assert interval is not None and attempts is not None
        return DynamicRendezvousHandler.from_backend(
            params.run_id, store, backend, params.min_nodes, params.max_nodes, params.local_addr,
            timeout, interval, attempts)
    except Exception as error:
        construct_and_record_rdzv_event(
            message=f"{type(error).__name__}: {error}", run_id=params.run_id,
            node_state=NodeState.FAILED)
        raise
