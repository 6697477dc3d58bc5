"""A store in etcd."""
from __future__ import annotations

import sys
import threading
from datetime import timedelta

import pytest


def test_a_store(modules):
    client = sys.modules["etcd"].Client()
    store = modules.etcd_store.EtcdStore(client, "/p", timedelta(seconds=0.2))
    store.set("a", "1")
    assert store.get("a") == b"1" and store.check(["a"]) and not store.check(["a", "b"])
    assert store.add("n", 2) == 2 and store.add("n", 3) == 5
    with pytest.raises(LookupError, match="Timed out while waiting for keys in EtcdStore"):
        store.get("b")
    other = modules.etcd_store.EtcdStore(client, "/p/", timedelta(seconds=5))
    threading.Timer(0.1, store.set, ("b", b"\xff")).start()
    other.wait(["a", "b"])
    assert other.get("b") == b"\xff" and not modules.etcd_store.EtcdStore(client, "/q").check("a")


def test_waiting_has_an_end(modules):
    store = modules.etcd_store.EtcdStore(sys.modules["etcd"].Client(), "/p")
    with pytest.raises(LookupError, match="Timed out while waiting for keys in EtcdStore"):
        store.wait(["none"], timedelta(seconds=0.02))
    assert not store.check(["none"]) and store.check([])
