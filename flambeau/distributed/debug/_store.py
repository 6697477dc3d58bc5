"""Where the processes of a program find each other's debug servers."""
from __future__ import annotations

import os

from flambeau.distributed._c10d.stores import PrefixStore, Store, TCPStore


def get_rank() -> int:
    """The number of this process, as the launcher says."""
    return int(os.environ["RANK"])


def get_world_size() -> int:
    """The number of processes, as the launcher says."""
    return int(os.environ["WORLD_SIZE"])


def tcpstore_client(prefix: str = "debug_server") -> Store:
    """A client of the store at MASTER_ADDR and MASTER_PORT."""
    store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False,
                     wait_for_workers=False)
    return PrefixStore(prefix, store) if prefix else store
