"""Parameters, handlers and their registry."""
from __future__ import annotations

import socket

import pytest

from flambeau.distributed import HashStore
from flambeau.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousHandlerRegistry,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    api,
)


def parameters(**options):
    return RendezvousParameters("b", "", "run", 1, 1, **options)


@pytest.mark.parametrize(("value", "meaning"), [
    *[(word, True) for word in ("1", "true", "T", "YES", "y", True, 1)],
    *[(word, False) for word in ("0", "False", "f", "no", "N", False, 0)], (None, None)])
def test_truths(value, meaning):
    assert parameters(a=value).get_as_bool("a") is meaning


@pytest.mark.parametrize("value", ["x", "", "2", 2, -1, 1.0, " 1", []])
def test_no_truths(value):
    with pytest.raises(ValueError, match="configuration option 'a' does not "
                                         "represent a valid boolean value"):
        parameters(a=value).get_as_bool("a")


def test_numbers():
    found = parameters(a=3, b="4", c=" 5 ", d="x", e=2.7)
    assert [found.get_as_int(key) for key in "abce"] == [3, 4, 5, 2]
    assert found.get_as_int("none") is None and found.get_as_int("none", 7) == 7
    with pytest.raises(ValueError, match="'d' does not represent a valid integer value"):
        found.get_as_int("d")
    assert found.get("d") == "x" and found.get("none") is None and found.get("none", 1) == 1
    assert found.get_as_bool("none", True) is True


def test_what_is_refused():
    with pytest.raises(ValueError, match="backend name must be a non-empty string"):
        RendezvousParameters("", "", "run", 1, 1)
    with pytest.raises(ValueError, match=r"minimum number of rendezvous nodes \(0\) must be"):
        RendezvousParameters("b", "", "run", 0, 1)
    with pytest.raises(ValueError, match=(
            r"maximum number of rendezvous nodes \(1\) must be greater than or equal to the "
            r"minimum number of rendezvous nodes \(2\)")):
        RendezvousParameters("b", "", "run", 2, 1)


class Handler(RendezvousHandler):
    def __init__(self, name):
        self.name = name

    def get_backend(self):
        return self.name

    def next_rendezvous(self):
        raise NotImplementedError

    is_closed = set_closed = num_nodes_waiting = get_run_id = shutdown = next_rendezvous


def test_registry():
    registry = RendezvousHandlerRegistry()
    registry.register("a", int)
    registry.register("a", int)
    with pytest.raises(ValueError, match="backend 'a' cannot be registered with '<class 'str'>' as "
                                         "it is already registered with '<class 'int'>'"):
        registry.register("a", str)
    with pytest.raises(ValueError, match="backend name must be a non-empty string"):
        registry.register("", str)
    with pytest.raises(ValueError, match="backend 'b' is not registered"):
        registry.create_handler(parameters())
    registry.register("b", lambda given: Handler("b"))
    handler = registry.create_handler(parameters())
    assert handler.get_backend() == "b" and handler.use_agent_store is False
    other = RendezvousHandlerRegistry()
    other.register("b", lambda given: Handler("c"))
    with pytest.raises(RuntimeError, match="backend 'c' does not match the requested backend 'b'"):
        other.create_handler(parameters())


def test_where_the_workers_meet():
    store = HashStore()
    first = RendezvousStoreInfo.build(0, store, "here", 7)
    assert first == RendezvousStoreInfo("here", 7) == RendezvousStoreInfo.build(1, store, "there")
    assert store.get("MASTER_ADDR") == b"here" and store.get("MASTER_PORT") == b"7"
    free = RendezvousStoreInfo.build(0, HashStore(), None)
    assert free.master_addr == socket.getfqdn() and 0 < free.master_port < 65536
    info = RendezvousInfo(store, 1, 2, first)
    assert (info.store, info.rank, info.world_size, info.bootstrap_store_info) == (
        store, 1, 2, first)


def test_errors_have_one_base():
    found = [getattr(api, name) for name in api.__all__ if name.endswith("Error")]
    assert len(found) == 6
    assert all(issubclass(error, api.RendezvousError) for error in found)
