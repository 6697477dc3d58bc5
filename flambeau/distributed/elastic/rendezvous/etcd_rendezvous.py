"""Rendezvous in etcd, under the names that it has had since nodes first came and went.

The nodes agree as they do with every other backend (`dynamic_rendezvous`); the workers' store is
in etcd too.
"""
from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from flambeau.distributed.elastic.rendezvous.api import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
)
from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
    RendezvousTimeout,
)
from flambeau.distributed.elastic.rendezvous.etcd_rendezvous_backend import (
    EtcdRendezvousBackend,
    create_etcd_client,
)
from flambeau.distributed.elastic.rendezvous.etcd_store import EtcdStore, cas_delay

__all__ = ["EtcdRendezvous", "EtcdRendezvousHandler", "EtcdRendezvousRetryImmediately",
           "EtcdRendezvousRetryableFailure", "create_rdzv_handler"]

logger = logging.getLogger(__name__)
_DEFAULT_TIMEOUT, _DEFAULT_LAST_CALL_TIMEOUT = 600, 30
CONST_RUNID_SUBROOT_TTL = 7200


class EtcdRendezvousRetryableFailure(Exception):
    """A step of a rendezvous that may be tried again."""


class EtcdRendezvousRetryImmediately(Exception):
    """A step of a rendezvous that is to be tried again at once."""


class EtcdRendezvous:
    """The nodes of a run, `num_min_workers` to `num_max_workers`, which meet under a prefix."""

    def __init__(self, client: Any, prefix: str, run_id: str, num_min_workers: int,
                 num_max_workers: int, timeout: float, last_call_timeout: float,
                 local_addr: str | None = None):
        self.client, self._prefix, self._run_id = client, prefix.rstrip("/"), run_id
        self._num_min_workers, self._num_max_workers = num_min_workers, num_max_workers
        self._timeout, self._last_call_timeout = timeout, last_call_timeout
        backend = EtcdRendezvousBackend(client, run_id, self._prefix, CONST_RUNID_SUBROOT_TTL)
        self.handler = DynamicRendezvousHandler.from_backend(
            run_id, EtcdStore(client, self.get_path("/rdzv/agents")), backend, num_min_workers,
            num_max_workers, local_addr, RendezvousTimeout(
                timedelta(seconds=timeout), timedelta(seconds=last_call_timeout)))

    def rendezvous_barrier(self) -> tuple[int, int, int]:
        """Meet the other nodes: the number of the round, of this node, and of how many."""
        found = self.handler.next_rendezvous()
        return self.handler._state_holder.state.round, found.rank, found.world_size

    def setup_kv_store(self, rdzv_version: int) -> EtcdStore:
        """The store of the workers of a round."""
        return EtcdStore(self.client, self.get_path(f"/rdzv/v_{rdzv_version}/kv"))

    def store_extra_data(self, rdzv_version: int, key: str, value: Any) -> None:
        """Keep something for the nodes of a round."""
        self._extra(rdzv_version).set(key, value)

    def load_extra_data(self, rdzv_version: int, key: str, timeout: float | None = None) -> bytes:
        """What was kept for the nodes of a round, which is waited for."""
        store = self._extra(rdzv_version)
        store.wait([key], timedelta(seconds=self._timeout if timeout is None else timeout))
        return store.get(key)

    def _extra(self, rdzv_version: int) -> EtcdStore:
        return EtcdStore(self.client, self.get_path(f"/rdzv/v_{rdzv_version}/extra_data"))

    def set_closed(self) -> None:
        """End the run's rendezvous for good."""
        self.handler.set_closed()

    def get_path(self, path: str) -> str:
        """A place of the run."""
        return f"{self._prefix}/run_{self._run_id}{'' if path.startswith('/') else '/'}{path}"


class EtcdRendezvousHandler(RendezvousHandler):
    """A node's part in a rendezvous in etcd.

    Its backend is `etcd://HOST:PORT/RUN?min_workers=1&max_workers=4` in the form of an address.
    """

    def __init__(self, rdzv_impl: EtcdRendezvous, local_addr: str | None):
        self._rdzv_impl, self._local_addr = rdzv_impl, local_addr

    def get_backend(self) -> str:
        """"etcd"."""
        return "etcd"

    def next_rendezvous(self) -> RendezvousInfo:
        """Meet the other nodes: waits until there are enough of them."""
        version, rank, world_size = self._rdzv_impl.rendezvous_barrier()
        store = self._rdzv_impl.setup_kv_store(version)
        return RendezvousInfo(store, rank, world_size,
                              RendezvousStoreInfo.build(rank, store, self._local_addr))

    def is_closed(self) -> bool:
        """Has the rendezvous ended for good?"""
        return self._rdzv_impl.handler.is_closed()

    def set_closed(self) -> None:
        """End the rendezvous for good."""
        self._rdzv_impl.set_closed()

    def num_nodes_waiting(self) -> int:
        """How many nodes wait to be let in."""
        return self._rdzv_impl.handler.num_nodes_waiting()

    def get_run_id(self) -> str:
        """The name of the run."""
        return self._rdzv_impl._run_id

    def shutdown(self) -> bool:
        """Close the rendezvous and leave."""
        return self._rdzv_impl.handler.shutdown()


_create_etcd_client = create_etcd_client


def create_rdzv_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The handler for these parameters. Options beside those of `create_etcd_client`: `timeout`
    and `last_call_timeout` in seconds, `etcd_prefix`."""
    found = EtcdRendezvous(
        _create_etcd_client(params), params.get("etcd_prefix", "/torchelastic/p2p"),
        params.run_id, params.min_nodes, params.max_nodes,
        params.get_as_int("timeout", _DEFAULT_TIMEOUT) or _DEFAULT_TIMEOUT,
        params.get_as_int("last_call_timeout", _DEFAULT_LAST_CALL_TIMEOUT)
        or _DEFAULT_LAST_CALL_TIMEOUT, params.local_addr)
    return EtcdRendezvousHandler(found, params.local_addr)


_SHARED = (cas_delay,)                  # by its name here, too
