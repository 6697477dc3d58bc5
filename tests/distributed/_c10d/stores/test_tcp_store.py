"""A store that a process serves."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from flambeau import distributed as dist


def test_messages():
    store = dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(milliseconds=10))
    with pytest.raises(dist.DistStoreError, match="wait timeout after 10ms, keys: /none"):
        store.get("none")
    with pytest.raises(dist.DistNetworkError, match="timed out after 10ms while trying to connect"):
        dist.TCPStore("127.0.0.1", 1, 1, False, timedelta(milliseconds=10))


def test_clients_meet_at_the_server():
    server = dist.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)
    client = dist.TCPStore("127.0.0.1", server.port, 2, False, wait_for_workers=False)
    client.set("key", "value")
    assert server.get("key") == b"value"
    found = []
    thread = threading.Thread(target=lambda: found.append(
        dist.TCPStore("127.0.0.1", server.port, 2, False)))
    thread.start()
    dist.TCPStore("127.0.0.1", server.port, 2, False)       # both wait for each other
    thread.join()
    assert len(found) == 1
