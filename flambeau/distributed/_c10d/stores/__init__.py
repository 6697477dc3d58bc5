"""Key-value stores, through which processes find each other: `store` (what all share, in memory,
and views of others), `file_store` and `tcp_store` (whose entries are bytes: `encoding`), and
`collectives` of small values through any of them."""
from __future__ import annotations

from flambeau.distributed._c10d.stores.file_store import FileStore
from flambeau.distributed._c10d.stores.store import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
)
from flambeau.distributed._c10d.stores.tcp_store import TCPStore

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore",
           "HashStore", "PrefixStore", "QueueEmptyError", "Store", "TCPStore"]
