"""Key-value stores, through which processes find each other: in memory, in a file, over TCP."""
from __future__ import annotations

from flambeau.distributed._c10d.file_store import FileStore
from flambeau.distributed._c10d.store import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
)
from flambeau.distributed._c10d.tcp_store import TCPStore

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore",
           "HashStore", "PrefixStore", "QueueEmptyError", "Store", "TCPStore"]
