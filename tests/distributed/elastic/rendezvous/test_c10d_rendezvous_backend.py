"""The state of a rendezvous in a store."""
from __future__ import annotations

import pytest

from flambeau.distributed import FileStore, HashStore, TCPStore
from flambeau.distributed.elastic.rendezvous import (
    RendezvousConnectionError,
    RendezvousParameters,
    RendezvousStateError,
)
from flambeau.distributed.elastic.rendezvous.c10d_rendezvous_backend import (
    C10dRendezvousBackend,
    create_backend,
)
from flambeau.distributed.elastic.utils.distributed import get_free_port


def test_the_state_is_exchanged():
    store = HashStore()
    backend = C10dRendezvousBackend(store, "run")
    assert backend.get_state() is None and backend.name == "c10d"
    _, token, was_set = backend.set_state(b"a")
    assert was_set and backend.get_state() == (b"a", token)
    assert backend.set_state(b"b")[2] is False                  # there is one already
    assert backend.set_state(b"b", token)[2] is True
    assert backend.set_state(b"c", token)[::2] == (b"b", False)     # an old token
    assert backend.set_state(b"c", "no bytes")[::2] == (b"b", False)
    assert C10dRendezvousBackend(store, "run").get_state()[0] == b"b"
    assert C10dRendezvousBackend(store, "other").get_state() is None
    assert store.get("torch.rendezvous.run") == b"Yg=="


def test_no_state_for_a_token_that_is_none():
    assert C10dRendezvousBackend(HashStore(), "run").set_state(b"a", "no bytes") is None


def test_what_is_refused():
    with pytest.raises(ValueError, match="The run id must be a non-empty string"):
        C10dRendezvousBackend(HashStore(), "")
    store = HashStore()
    backend = C10dRendezvousBackend(store, "run")
    store.set("torch.rendezvous.run", "a")
    with pytest.raises(RendezvousStateError, match="The state object is corrupt"):
        backend.get_state()


def create(endpoint, **options):
    return create_backend(RendezvousParameters("c10d", endpoint, "run", 1, 1, **options))


def test_stores(tmp_path):
    endpoint = f"localhost:{get_free_port()}"
    backend, store = create(endpoint)
    assert isinstance(store, TCPStore) and store.host == "localhost"
    second, _ = create(endpoint, store_type="TCP ")         # the first has the port
    backend.set_state(b"a")
    assert second.get_state()[0] == b"a"
    _, store = create(str(tmp_path / "store"), store_type="file")
    assert isinstance(store, FileStore) and store.path == str(tmp_path / "store")
    _, store = create("", store_type="file")
    assert isinstance(store, FileStore)


@pytest.mark.parametrize(("endpoint", "options", "error", "words"), [
    ("localhost:1", {"read_timeout": 0}, ValueError, "read timeout must be a positive integer"),
    ("localhost:1", {"read_timeout": "x"}, ValueError, "'read_timeout' does not represent"),
    ("localhost:1", {"is_host": "x"}, ValueError, "'is_host' does not represent a valid boolean"),
    ("localhost", {"store_type": "x"}, ValueError, "Currently only supports file and tcp"),
    ("/no/such/folder/store", {"store_type": "file"}, RendezvousConnectionError,
     "The connection to the C10d store has failed. See inner exception for details")])
def test_stores_that_cannot_be_made(endpoint, options, error, words):
    with pytest.raises(error, match=words):
        create(endpoint, **options)
