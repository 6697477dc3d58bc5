"""Nodes that know all beforehand."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from flambeau.distributed.elastic.rendezvous import RendezvousParameters
from flambeau.distributed.elastic.rendezvous.static_tcp_rendezvous import create_rdzv_handler
from flambeau.distributed.elastic.utils.distributed import get_free_port


def node(endpoint, **options):
    return create_rdzv_handler(RendezvousParameters("static", endpoint, "run", 2, 2, **options))


def test_two_nodes_meet():
    port, infos = get_free_port(), {}
    nodes = [node(f"localhost:{port}", rank=rank, timeout=20) for rank in range(2)]

    def meet(rank):
        infos[rank] = nodes[rank].next_rendezvous()
    threads = [threading.Thread(target=meet, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for rank in range(2):
        info = infos[rank]
        assert (info.rank, info.world_size) == (rank, 2)
        assert info.bootstrap_store_info.master_addr == "localhost"
        assert info.bootstrap_store_info.master_port == port
    infos[0].store.set("key", "value")
    assert infos[1].store.get("key") == b"value"
    assert infos[0].store.underlying_store.get("run/key") == b"value"


def test_what_it_is():
    found = node("localhost:29500", rank=1)
    assert (found.rank, found.world_size, found.timeout) == (1, 2, timedelta(seconds=600))
    assert found.use_agent_store and found.get_run_id() == "run"
    found.set_closed()
    assert not found.is_closed() and found.num_nodes_waiting() == 0 and found.shutdown() is True


@pytest.mark.parametrize(("endpoint", "options", "words"), [
    ("localhost:1", {}, "rank is absent in RendezvousParameters.Try add --node-rank to the cmd"),
    (" ", {"rank": 0}, "endpoint is absent in RendezvousParametersTry add --master-port and"),
    ("localhost", {"rank": 0}, "Port is absent in endpoint: localhost. Try launching with "
                               "--master-port")])
def test_what_is_refused(endpoint, options, words):
    with pytest.raises(ValueError, match=words):
        node(endpoint, **options)
