"""Stores at ports."""
import socket

import pytest

from flambeau.distributed import DistNetworkError, DistStoreError
from flambeau.distributed.elastic.utils.distributed import create_c10d_store, get_free_port


def test_stores_at_ports():
    server = create_c10d_store(True, "localhost")
    client = create_c10d_store(False, "localhost", server.port, wait_for_workers=False)
    client.set("key", "value")
    assert server.get("key") == b"value"


def test_what_is_refused():
    with pytest.raises(ValueError, match=(
            "server_port must be specified when world_size > 1, got server_port=-1, "
            "world_size=2")):
        create_c10d_store(True, "localhost", -1, 2)
    with pytest.raises(DistStoreError, match=r"waiting for clients. 1/2 clients joined"):
        create_c10d_store(True, "localhost", get_free_port(), 2, timeout=0.3)
    server = create_c10d_store(True, "localhost")
    with pytest.raises(DistNetworkError, match="EADDRINUSE"):
        create_c10d_store(True, "localhost", server.port)


def test_a_free_port():
    with socket.socket() as mine:
        mine.bind(("localhost", get_free_port()))
