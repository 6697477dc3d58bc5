"""A client of etcd that keeps its entries in this process."""
from __future__ import annotations

import importlib
import sys
import threading
import types
from types import SimpleNamespace

import pytest

NAMES = ("etcd_store", "etcd_rendezvous_backend", "etcd_rendezvous", "etcd_server")
PACKAGE = "flambeau.distributed.elastic.rendezvous"


def fake_etcd():
    """What is used of python-etcd."""
    found = types.ModuleType("etcd")
    for name in ("EtcdException", "EtcdConnectionFailed", "EtcdKeyNotFound", "EtcdAlreadyExist",
                 "EtcdCompareFailed", "EtcdWatchTimedOut", "EtcdEventIndexCleared"):
        setattr(found, name, type(name, (Exception,), {}))
    entries, changed, count = {}, threading.Condition(), [0]

    class Client:
        def __init__(self, *args, **kwargs):
            self.version = "3.4"

        def write(self, key, value, ttl=None, prevExist=None, prevIndex=None):
            with changed:
                known = entries.get(key)
                if prevExist is False and known is not None:
                    raise found.EtcdAlreadyExist
                if prevIndex is not None:
                    if known is None:
                        raise found.EtcdKeyNotFound
                    if known.modifiedIndex != prevIndex:
                        raise found.EtcdCompareFailed
                count[0] += 1
                entries[key] = SimpleNamespace(value=value, modifiedIndex=count[0])
                changed.notify_all()
                return entries[key]

        def set(self, key, value):
            return self.write(key, value)

        def test_and_set(self, key, value, prev_value):
            with changed:
                if entries[key].value != prev_value:
                    raise found.EtcdCompareFailed
                return self.write(key, value)

        def get(self, key):
            with changed:
                if key not in entries:
                    raise found.EtcdKeyNotFound
                return entries[key]

        read = get

        def watch(self, key, recursive, timeout):
            with changed:
                if not changed.wait(timeout):
                    raise found.EtcdWatchTimedOut
    found.Client = Client
    return found


@pytest.fixture
def modules(monkeypatch):
    """The modules, as they are where python-etcd is installed."""
    for name in NAMES:
        monkeypatch.delitem(sys.modules, f"{PACKAGE}.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "etcd", fake_etcd())
    yield SimpleNamespace(**{n: importlib.import_module(f"{PACKAGE}.{n}") for n in NAMES})
    for name in NAMES:
        del sys.modules[f"{PACKAGE}.{name}"]
        delattr(sys.modules[PACKAGE], name)
