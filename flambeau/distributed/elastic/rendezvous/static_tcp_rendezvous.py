"""Rendezvous of nodes that know all beforehand: address, port, rank and how many they are."""
from __future__ import annotations

from datetime import timedelta

from flambeau.distributed._c10d.stores import PrefixStore, Store, TCPStore
from flambeau.distributed.elastic.rendezvous.api import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
)
from flambeau.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]

_default_timeout_seconds = 600


class StaticTCPRendezvous(RendezvousHandler):
    """Through a store that node 0 holds; nodes do not come and go."""

    def __init__(self, master_addr: str, master_port: int, rank: int, world_size: int,
                 run_id: str, timeout: int):
        self.master_addr, self.master_port = master_addr, master_port
        self.rank, self.world_size, self.run_id = rank, world_size, run_id
        self.timeout = timedelta(seconds=timeout)
        self._store: Store | None = None

    def get_backend(self) -> str:
        """"static"."""
        return "static"

    @property
    def use_agent_store(self) -> bool:
        """True: node 0's agent holds the store of the workers."""
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        """Wait for all nodes."""
        if self._store is None:
            self._store = TCPStore(self.master_addr, self.master_port, self.world_size,
                                   self.rank == 0, self.timeout, multi_tenant=True)
        return RendezvousInfo(PrefixStore(self.run_id, self._store), self.rank, self.world_size,
                              RendezvousStoreInfo(self.master_addr, self.master_port))

    def is_closed(self) -> bool:
        """False."""
        return False

    def set_closed(self) -> None:
        """Has no effect."""

    def num_nodes_waiting(self) -> int:
        """0: nobody else comes."""
        return 0

    def get_run_id(self) -> str:
        """The name of the run."""
        return self.run_id

    def shutdown(self) -> bool:
        """True."""
        return True


def create_rdzv_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The handler for these parameters, which name the rank."""
    if "rank" not in params.config:
        raise ValueError("rank is absent in RendezvousParameters."
                         "Try add --node-rank to the cmd request")
    endpoint = params.endpoint.strip()
    if not endpoint:
        raise ValueError("endpoint is absent in RendezvousParameters"
                         "Try add --master-port and --master-addr to the cmd request")
    host, port = parse_rendezvous_endpoint(endpoint, -1)
    if port == -1:
        raise ValueError(f"Port is absent in endpoint: {endpoint}. Try launching with "
                         "--master-port")
    return StaticTCPRendezvous(host, port, int(params.config["rank"]), params.max_nodes,
                               params.run_id, int(params.config.get("timeout",
                                                                    _default_timeout_seconds)))
