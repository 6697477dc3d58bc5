"""A store on this or another machine, and free ports."""
from __future__ import annotations

import time
from datetime import timedelta

from flambeau.distributed._c10d.stores import DistNetworkError, DistStoreError, TCPStore
from flambeau.distributed.elastic.utils.api import get_socket_with_port
from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]

logger = get_logger(__name__)
_TCP_STORE_INIT = "_tcp_store/num_members"


def create_c10d_store(is_server: bool, server_addr: str, server_port: int = -1,
                      world_size: int = 1, timeout: float = 60 * 10,
                      wait_for_workers: bool = True, retries: int = 3,
                      use_libuv: bool | None = None) -> TCPStore:
    """A `TCPStore`: the server with a free port if `server_port` is -1, or a client.

    >>> create_c10d_store(True, "localhost").port > 0
    True
    """
    if server_port == -1 and world_size > 1:
        raise ValueError("server_port must be specified when world_size > 1, got "
                         f"server_port={server_port}, world_size={world_size}")
    chosen = server_port
    for attempt in range(retries, -1, -1):
        port = get_free_port() if server_port == -1 else server_port
        try:
            store = TCPStore(server_addr, port, world_size, is_server, timedelta(seconds=timeout),
                             wait_for_workers=wait_for_workers)
        except DistNetworkError as error:
            # another program may have taken the free port
            if "failed to listen" not in str(error) or chosen != -1 or attempt == 0:
                raise
            logger.warning("port: %s already in use, attempt: [%s/%s]", port,
                           retries - attempt + 1, retries)
            time.sleep(0.1)
            continue
        if wait_for_workers:
            _check_full_rank(store, world_size, timeout=timeout)
        return store
    raise AssertionError("no attempt was made")


def _check_full_rank(store: TCPStore, world_size: int, timeout: float) -> None:
    from flambeau.distributed.elastic.utils.store import barrier
    try:
        barrier(store, world_size, key_prefix=_TCP_STORE_INIT, barrier_timeout=timeout)
    except DistStoreError:
        raise TimeoutError(f"timed out waiting for all {world_size} members to join") from None


def get_free_port() -> int:
    """A port that is free now.

    >>> 0 < get_free_port() < 65536
    True
    """
    with get_socket_with_port() as listening:
        return listening.getsockname()[1]
