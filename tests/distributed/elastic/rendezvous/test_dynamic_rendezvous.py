"""Agents that meet, and leave, and come back; words and values from PyTorch."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from flambeau.distributed import HashStore, TCPStore
from flambeau.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousTimeoutError,
)
from flambeau.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
    RendezvousTimeout,
    create_handler,
)


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
    second.leave()
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


def test_broken_states():
    store = HashStore()
    backend = C10dRendezvousBackend(store, "run")
    backend.set_state(b"no state")
    with pytest.raises(RendezvousStateError, match="The rendezvous state is corrupt"):
        node(store, 1, 1).next_rendezvous()


def test_a_closed_rendezvous():
    store = HashStore()
    first, second = node(store, 1, 1), node(store, 1, 1)
    assert not first.is_closed()
    assert first.shutdown() and second.is_closed() and second.shutdown()
    with pytest.raises(RendezvousClosedError):
        second.next_rendezvous()


def test_a_lost_store():
    class Lost(C10dRendezvousBackend):
        def get_state(self):
            from flambeau.distributed.elastic.rendezvous import RendezvousConnectionError
            raise RendezvousConnectionError
    backend = Lost(HashStore(), "run")
    found = DynamicRendezvousHandler.from_backend("run", HashStore(), backend, 1, 1, "localhost")
    assert found.shutdown() is False


def created(run_id="run", **options):
    store = HashStore()
    return create_handler(store, C10dRendezvousBackend(store, "run"), RendezvousParameters(
        "c10d", "", run_id, 1, 2, "here", **options))


def test_options():
    found = created(join_timeout="7", last_call_timeout=8, close_timeout=9, keep_alive_interval=3,
                    keep_alive_max_attempt=4)
    timeout = found.settings.timeout
    assert [t.total_seconds() for t in (timeout.join, timeout.last_call, timeout.close,
                                        timeout.heartbeat)] == [7, 8, 9, 5]
    assert found.settings.keep_alive_interval == timedelta(seconds=3)
    assert found.settings.keep_alive_max_attempt == 4
    assert found.get_run_id() == "run" and found.get_backend() == "c10d"
    with pytest.raises(ValueError, match=r"The close timeout \(0:00:00\) must be positive"):
        created(close_timeout=0)
    with pytest.raises(ValueError, match="The run id must be a non-empty string"):
        created("")
    backend = C10dRendezvousBackend(HashStore(), "run")
    with pytest.raises(ValueError, match=r"The minimum number of nodes \(0\) must be greater than"):
        DynamicRendezvousHandler.from_backend("run", HashStore(), backend, 0, 1)
    with pytest.raises(ValueError, match=(
            r"The maximum number of nodes \(1\) must be greater than or equal to the minimum "
            r"number of nodes \(2\)")):
        DynamicRendezvousHandler.from_backend("run", HashStore(), backend, 2, 1)


@pytest.mark.parametrize(("variable", "shared"), [("0", True), ("1", False)])
def test_the_store_of_the_workers(variable, shared, monkeypatch):
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", variable)
    found = node(HashStore(), 1, 1)
    assert found.use_agent_store is shared
    info = found.next_rendezvous()
    place = info.bootstrap_store_info
    if not shared:
        TCPStore(place.master_addr, place.master_port, is_master=True)      # the port is free
    info.store.set("key", "value")
    assert info.store.underlying_store.get("torch.rendezvous.run.0/key") == b"value"
    assert found.shutdown()
