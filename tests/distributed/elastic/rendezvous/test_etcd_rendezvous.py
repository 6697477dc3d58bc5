"""Nodes that meet in etcd."""
from __future__ import annotations

import sys
import threading

import pytest

from flambeau.distributed.elastic.rendezvous import RendezvousParameters


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


def test_what_is_kept_for_a_round(modules):
    rendezvous = modules.etcd_rendezvous.EtcdRendezvous(
        sys.modules["etcd"].Client(), "/prefix/", "run", 1, 1, 5, 1)
    assert rendezvous.get_path("x") == rendezvous.get_path("/x") == "/prefix/run_run/x"
    rendezvous.store_extra_data(3, "key", "value")
    assert rendezvous.load_extra_data(3, "key") == b"value"
    with pytest.raises(LookupError):
        rendezvous.load_extra_data(4, "key", timeout=0.02)
