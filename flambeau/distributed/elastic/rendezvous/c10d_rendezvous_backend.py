"""The state of a rendezvous, kept in a store."""
from __future__ import annotations

import os
import tempfile
from base64 import b64decode, b64encode
from datetime import timedelta
from typing import Any

from flambeau.distributed._c10d.stores import FileStore, Store, TCPStore
from flambeau.distributed.elastic.events import NodeState, construct_and_record_rdzv_event
from flambeau.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
    RendezvousError,
    RendezvousParameters,
    RendezvousStateError,
)
from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend
from flambeau.distributed.elastic.rendezvous.utils import (
    _matches_machine_hostname,
    parse_rendezvous_endpoint,
)
from flambeau.distributed.elastic.utils.logging import get_logger

logger = get_logger(__name__)
DEFAULT_PORT = 29400


class C10dRendezvousBackend(RendezvousBackend):
    """One entry of a store: the state in base64, which is also its token.

    >>> from flambeau.distributed import HashStore
    >>> backend = C10dRendezvousBackend(HashStore(), "run")
    >>> backend.get_state() is None
    True
    >>> state, token, was_set = backend.set_state(b"first")
    >>> state, was_set, backend.get_state()[0]
    (b'first', True, b'first')
    """

    _NULL_SENTINEL = "Y2FuaW1hZGFt"         # the value of an entry that is not there yet

    def __init__(self, store: Store, run_id: str):
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        self._store, self._key = store, "torch.rendezvous." + run_id
        self._call_store("compare_set", self._key, "", self._NULL_SENTINEL)

    @property
    def name(self) -> str:
        """"c10d"."""
        return "c10d"

    def get_state(self) -> tuple[bytes, Any] | None:
        """The state and its token; None if there is none yet."""
        return self._decode_state(self._call_store("get", self._key))

    def set_state(self, state: bytes, token: Any | None = None
                  ) -> tuple[bytes, Any, bool] | None:
        """Set the state if it is still the one of that token: the state that is there now, its
        token, and whether it was set."""
        new = b64encode(state).decode()
        if token:
            if not isinstance(token, bytes):
                found = self.get_state()
                return None if found is None else (*found, False)
            old = token.decode()
        else:
            old = self._NULL_SENTINEL
        found = self._call_store("compare_set", self._key, old, new)
        decoded = self._decode_state(found)
        return None if decoded is None else (*decoded, decoded[1] == new.encode())

    def _call_store(self, store_op: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self._store, store_op)(*args, **kwargs)
        except (ValueError, RuntimeError, TimeoutError) as error:
            raise RendezvousConnectionError("The connection to the C10d store has failed. See "
                                            "inner exception for details.") from error

    def _decode_state(self, base64_state: bytes) -> tuple[bytes, Any] | None:
        if base64_state == self._NULL_SENTINEL.encode():
            return None
        try:
            return b64decode(base64_state, validate=True), base64_state
        except ValueError as error:
            raise RendezvousStateError("The state object is corrupt. See inner exception for "
                                       "details.") from error


def _create_tcp_store(params: RendezvousParameters) -> TCPStore:
    """The store at the endpoint, held by this process if the endpoint is on this machine and
    nobody else holds it."""
    host, port = parse_rendezvous_endpoint(params.endpoint, default_port=DEFAULT_PORT)
    is_host = params.get_as_bool("is_host")
    # if it is said who is the host believe it, else see who comes first
    may_host = _matches_machine_hostname(host) if is_host is None else is_host
    timeout = params.get_as_int("read_timeout", 60)
    if timeout is None or timeout <= 0:
        raise ValueError("The read timeout must be a positive integer.")
    attempts = [True, False] if may_host and is_host is None else [may_host]
    for is_server in attempts:
        try:
            store = TCPStore(host, port, is_master=is_server, multi_tenant=True,
                             timeout=timedelta(seconds=timeout))
        except (ValueError, RuntimeError, TimeoutError) as error:
            # another process of this machine may be the host
            if is_server != attempts[-1]:
                continue
            raise RendezvousConnectionError("The connection to the C10d store has failed. See "
                                            "inner exception for details.") from error
        if is_server:
            _record(params, f"Process {os.getpid()} hosts the TCP store for the C10d rendezvous "
                            "backend.")
        return store
    raise AssertionError("no attempt was made")


def _create_file_store(params: RendezvousParameters) -> FileStore:
    path = params.endpoint
    if not path:
        try:
            _, path = tempfile.mkstemp()
        except OSError as error:
            raise RendezvousError("The file creation for C10d store has failed. See inner "
                                  "exception for details.") from error
    try:
        store = FileStore(path)
        store.num_keys()
    except (ValueError, RuntimeError, OSError) as error:
        raise RendezvousConnectionError("The connection to the C10d store has failed. See inner "
                                        "exception for details.") from error
    return store


def _record(params: RendezvousParameters, message: str) -> None:
    construct_and_record_rdzv_event(run_id=params.run_id, message=message,
                                    node_state=NodeState.INIT)
    logger.info(message)


def create_backend(params: RendezvousParameters) -> tuple[C10dRendezvousBackend, Store]:
    """The backend for these parameters, and its store.

    Options: `store_type` ("tcp" or "file"), `read_timeout` in seconds, `is_host`.
    """
    store_type = params.get("store_type", "tcp").strip().lower()
    try:
        if store_type == "file":
            store: Store = _create_file_store(params)
        elif store_type == "tcp":
            store = _create_tcp_store(params)
        else:
            raise ValueError("Invalid store type given. Currently only supports file and tcp.")
        backend = C10dRendezvousBackend(store, params.run_id)
    except Exception as error:
        construct_and_record_rdzv_event(
            run_id=params.run_id, message=f"{type(error).__name__}: {error}",
            node_state=NodeState.FAILED)
        raise
    return backend, store
