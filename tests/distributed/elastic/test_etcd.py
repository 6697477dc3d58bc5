"""Rendezvous and stores in etcd, against a client that keeps its entries in this process."""
import importlib
import sys
import threading
import types
from datetime import timedelta
from types import SimpleNamespace

import pytest

from flambeau.distributed.elastic.rendezvous import RendezvousParameters
from flambeau.distributed.elastic.rendezvous._etcd_stub import EtcdStubError

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


def test_the_state_of_a_rendezvous(modules):
    backend = modules.etcd_rendezvous_backend.EtcdRendezvousBackend(
        sys.modules["etcd"].Client(), "run")
    assert backend.name == "etcd-v2" and backend.get_state() is None
    state, token, was_set = backend.set_state(b"one")
    assert (state, was_set) == (b"one", True)
    assert backend.set_state(b"two", token)[::2] == (b"two", True)
    assert backend.set_state(b"three", token)[::2] == (b"two", False)
    assert backend.set_state(b"three")[::2] == (b"two", False)
    assert backend.set_state(b"three", "no number")[::2] == (b"two", False)


@pytest.mark.parametrize("backend", ["etcd", "etcd-v2"])
def test_nodes_meet(modules, backend):
    from flambeau.distributed.elastic.rendezvous.registry import (
        _create_etcd_handler,
        _create_etcd_v2_handler,
    )
    create = _create_etcd_handler if backend == "etcd" else _create_etcd_v2_handler
    found = {}

    def meet(number):
        handler = create(RendezvousParameters(backend, "localhost:2379", "run", 2, 2,
                                              local_addr="localhost", last_call_timeout=1))
        assert handler.get_backend() == backend and handler.get_run_id() == "run"
        info = handler.next_rendezvous()
        info.store.set(f"from{info.rank}", "here")
        found[number] = (info.rank, info.world_size, info.store.get(f"from{1 - info.rank}"))
        handlers.append(handler)
    handlers = []
    threads = [threading.Thread(target=meet, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(found.values()) == [(0, 2, b"here"), (1, 2, b"here")]
    handlers[0].set_closed()
    assert handlers[0].is_closed() and handlers[0].num_nodes_waiting() == 0
    assert handlers[0].shutdown() and handlers[1].shutdown()


def test_without_the_package():
    if "etcd" in sys.modules:
        pytest.skip("python-etcd is installed")
    from flambeau.distributed.elastic.rendezvous import etcd_rendezvous, etcd_server
    with pytest.raises(EtcdStubError, match="The 'etcd' module is required but not installed"):
        etcd_rendezvous.create_rdzv_handler(RendezvousParameters("etcd", "localhost:2379", "1",
                                                                 1, 2))
    server = etcd_server.EtcdServer()
    assert server.get_endpoint() == "localhost:-1"
    with pytest.raises(RuntimeError, match="No etcd server process started"):
        server._get_etcd_server_process()
    with etcd_server.find_free_port() as free:
        assert free.getsockname()[1] > 0
    server.stop()
