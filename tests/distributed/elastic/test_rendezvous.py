"""Agents that meet, and leave, and come back; words and values from PyTorch."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from flambeau.distributed import HashStore, TCPStore
from flambeau.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousHandlerRegistry,
    RendezvousParameters,
    RendezvousTimeoutError,
)
from flambeau.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
    RendezvousTimeout,
)
from flambeau.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from flambeau.distributed.elastic.rendezvous.state import leave
from flambeau.distributed.elastic.rendezvous.utils import (
    _matches_machine_hostname,
    _parse_rendezvous_config,
    _PeriodicTimer,
    parse_rendezvous_endpoint,
)
from flambeau.distributed.elastic.utils.distributed import get_free_port


@pytest.mark.parametrize(("text", "found"), [
    ("", ("localhost", 5)), (None, ("localhost", 5)), ("a", ("a", 5)), ("a:1", ("a", 1)),
    (" a:1", ("a", 1)), ("[::1]:2", ("::1", 2)), ("[::1]", ("::1", 5))])
def test_endpoints(text, found):
    assert parse_rendezvous_endpoint(text, 5) == found


@pytest.mark.parametrize("text", ["a:b", "a:100000", "a:-1", ":1", "a b:1"])
def test_bad_endpoints(text):
    with pytest.raises(ValueError, match=f"of the rendezvous endpoint '{text}' must be a"):
        parse_rendezvous_endpoint(text, 5)


def test_options():
    assert _parse_rendezvous_config(" a = 1 ,b=2") == {"a": "1", "b": "2"}
    assert _parse_rendezvous_config("") == {}
    with pytest.raises(ValueError, match="option 'a' must have a value specified"):
        _parse_rendezvous_config("a")
    with pytest.raises(ValueError, match="must be in format <key1>=<value1>"):
        _parse_rendezvous_config("a=1,,b=2")
    parameters = RendezvousParameters("b", "", "run", 1, 1, yes="yes", no="0", word="x", three=3)
    assert parameters.get_as_bool("yes") is True and parameters.get_as_bool("no") is False
    assert parameters.get_as_int("three") == 3 and parameters.get_as_int("none") is None
    with pytest.raises(ValueError, match="'word' does not represent a valid boolean value"):
        parameters.get_as_bool("word")
    with pytest.raises(ValueError, match="'word' does not represent a valid integer value"):
        parameters.get_as_int("word")
    with pytest.raises(ValueError, match=r"minimum number of rendezvous nodes \(0\)"):
        RendezvousParameters("b", "", "run", 0, 1)
    with pytest.raises(ValueError, match=r"maximum number of rendezvous nodes \(1\)"):
        RendezvousParameters("b", "", "run", 2, 1)


def test_hosts_of_this_machine():
    assert _matches_machine_hostname("localhost") and _matches_machine_hostname("127.0.0.1")
    assert not _matches_machine_hostname("8.8.8.8")


def test_registry():
    registry = RendezvousHandlerRegistry()
    registry.register("a", int)
    registry.register("a", int)
    with pytest.raises(ValueError, match="'a' cannot be registered with"):
        registry.register("a", str)
    with pytest.raises(ValueError, match="backend 'b' is not registered"):
        registry.create_handler(RendezvousParameters("b", "", "run", 1, 1))
    for options, words in (({}, "rank is absent"), ({"rank": 0}, "endpoint is absent")):
        with pytest.raises(ValueError, match=words):
            get_rendezvous_handler(RendezvousParameters("static", "", "r", 1, 1, **options))
    with pytest.raises(ValueError, match="Invalid store type given"):
        get_rendezvous_handler(RendezvousParameters("c10d", "", "r", 1, 1, store_type="x"))
    with pytest.raises(RendezvousConnectionError):
        get_rendezvous_handler(RendezvousParameters("c10d", f"localhost:{get_free_port()}", "r",
                                                    1, 1, is_host=False, read_timeout=1))


def test_static():
    port = get_free_port()
    nodes = [get_rendezvous_handler(RendezvousParameters("static", f"localhost:{port}", "run", 2,
                                                         2, rank=i, timeout=20))
             for i in range(2)]
    infos = meet(*nodes)
    assert [(i.rank, i.world_size, i.bootstrap_store_info.master_port) for i in infos] == [
        (0, 2, port), (1, 2, port)]


def test_state_of_a_backend():
    backend = C10dRendezvousBackend(HashStore(), "run")
    assert backend.get_state() is None and backend.name == "c10d"
    _, token, was_set = backend.set_state(b"a")
    assert was_set and backend.get_state() == (b"a", token)
    assert backend.set_state(b"b")[2] is False                  # there is one already
    assert backend.set_state(b"b", token)[2] is True
    assert backend.set_state(b"c", token)[::2] == (b"b", False)     # an old token


def node(backend_store, low, high, last_call=0.2, join=20.0):
    backend = C10dRendezvousBackend(backend_store, "run")
    found = DynamicRendezvousHandler.from_backend(
        "run", backend_store, backend, low, high, "localhost",
        RendezvousTimeout(timedelta(seconds=join), timedelta(seconds=last_call)))
    found._state_holder._cache_duration = 0
    return found


def meet(*nodes):
    """What the nodes get, in their order; raises what one of them raises."""
    found = [None] * len(nodes)

    def run(i):
        try:
            found[i] = nodes[i].next_rendezvous()
        except Exception as error:
            found[i] = error
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(nodes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for result in found:
        if isinstance(result, Exception):
            raise result
    return found


def test_nodes_come_and_go():
    store = HashStore()
    first, second, third = (node(store, 1, 2) for _ in range(3))
    infos = meet(first, second)
    assert sorted(i.rank for i in infos) == [0, 1] and infos[0].world_size == 2
    place = infos[0].bootstrap_store_info
    assert place == infos[1].bootstrap_store_info
    TCPStore(place.master_addr, place.master_port, wait_for_workers=False).set("alive", "1")
    # one leaves for good and its place is free: a third one waits for it
    second._state_holder.run(leave, second._this_node, float("inf"))
    second._stop_heartbeats()
    joining = threading.Thread(target=third.next_rendezvous)
    joining.start()
    while not first.num_nodes_waiting():
        pass
    again = first.next_rendezvous()
    joining.join(30)
    assert again.world_size == 2 and first._state_holder.state.round == 1
    first.set_closed()
    assert third.is_closed()
    with pytest.raises(RendezvousClosedError):
        second.next_rendezvous()
    assert first.shutdown() and third.shutdown()


def test_too_few_nodes():
    with pytest.raises(RendezvousTimeoutError):
        node(HashStore(), 2, 2, join=0.1).next_rendezvous()
    with pytest.raises(ValueError, match=r"The join timeout \(0:00:00\) must be positive"):
        RendezvousTimeout(timedelta(0))


def test_dead_nodes_are_left_out():
    store = HashStore()
    dead, alive = node(store, 1, 2), node(store, 1, 2)
    meet(dead, alive)
    dead._stop_heartbeats()
    holder = alive._state_holder
    holder.sync()
    holder.state.last_heartbeats[dead._this_node] -= 60
    holder.state.remove_dead(alive.settings)
    assert list(holder.state.participants) == [alive._this_node]
    alive._stop_heartbeats()


def test_timer():
    called = threading.Event()
    timer = _PeriodicTimer(timedelta(seconds=0.01), called.set)
    timer.start()
    assert called.wait(10)
    timer.cancel()
    with pytest.raises(RuntimeError, match="already started"):
        timer.start()
