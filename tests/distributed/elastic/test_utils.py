"""Samplers that go on, stores, macros; values from PyTorch."""
from __future__ import annotations

import pytest

from flambeau.distributed import DistStoreError, HashStore
from flambeau.distributed.elastic.utils import get_env_variable_or_raise, macros
from flambeau.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler
from flambeau.distributed.elastic.utils.distributed import create_c10d_store
from flambeau.distributed.elastic.utils.process_state import read_proc_state
from flambeau.distributed.elastic.utils.store import barrier, synchronize


@pytest.mark.parametrize(("size", "replicas", "rank", "start", "orders"), [
    (10, 2, 0, 4, ([6, 7, 5], [5, 6, 7])), (10, 3, 1, 0, ([1, 3, 8, 4], [6, 0, 3, 5])),
    (10, 3, 2, 5, ([6, 9], [7, 5]))])
def test_a_sampler_goes_on(size, replicas, rank, start, orders):
    sampler = ElasticDistributedSampler(range(size), replicas, rank, start)
    assert len(sampler) == len(orders[0])
    for epoch, order in enumerate(orders):
        sampler.set_epoch(epoch)
        assert list(sampler) == order
    with pytest.raises(ValueError, match="Start index 3 should be less than dataset size 3"):
        ElasticDistributedSampler(range(3), 1, 0, 3)


def test_epochs_in_a_row():
    assert list(CyclingIterator(3, lambda epoch: iter([epoch] * epoch), 1)) == [1, 2, 2]


def test_macros_and_variables(monkeypatch):
    assert macros.substitute(["a${local_rank}", 3, "$local_rank", "${x}"], "2") == [
        "a2", 3, "2", "${x}"]
    monkeypatch.delenv("NO_SUCH", raising=False)
    with pytest.raises(ValueError, match="Environment variable NO_SUCH expected, but not set"):
        get_env_variable_or_raise("NO_SUCH")


def test_missing_ranks_are_named():
    store = HashStore()
    assert synchronize(store, b"x", 0, 1, "z") == [b"x"]
    store.add("b/num_members", 1)
    store.set("b1/TRACE", "")
    with pytest.raises(DistStoreError, match=(
            r"Timed out waiting on barrier on rank 0, for key prefix: b \(world_size=4, "
            r"missing_ranks=\[h2, h3\], timeout=0.01\)")):
        barrier(store, 4, "b", 0.01, rank=0, rank_tracing_decoder="h{}".format)
    with pytest.raises(AssertionError, match="Tracing requires rank information"):
        barrier(store, 1, "b", rank_tracing_decoder=str)


def test_stores_at_ports():
    server = create_c10d_store(True, "localhost")
    client = create_c10d_store(False, "localhost", server.port, wait_for_workers=False)
    client.set("key", "value")
    assert server.get("key") == b"value"
    with pytest.raises(ValueError, match="server_port must be specified when world_size > 1"):
        create_c10d_store(True, "localhost", -1, 2)


def test_states_of_processes():
    import os
    assert read_proc_state(os.getpid()) in ("R", "S") and read_proc_state(2 ** 22 + 1) is None
