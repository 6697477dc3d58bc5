"""The state of a rendezvous in etcd."""
from __future__ import annotations

import sys

import pytest

from flambeau.distributed.elastic.rendezvous import (
    RendezvousConnectionError,
    RendezvousParameters,
    RendezvousStateError,
)


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


def test_what_is_broken(modules):
    client, error = sys.modules["etcd"].Client(), sys.modules["etcd"].EtcdException
    backend = modules.etcd_rendezvous_backend.EtcdRendezvousBackend(client, "run", "/prefix")
    client.set("/prefix/run", "a")
    with pytest.raises(RendezvousStateError, match="The state object is corrupt"):
        backend.get_state()

    def lost(*args, **kwargs):
        raise error
    client.read = client.write = lost
    for call in (backend.get_state, lambda: backend.set_state(b"one")):
        with pytest.raises(RendezvousConnectionError, match="The connection to etcd has failed"):
            call()


@pytest.mark.parametrize(("options", "words"), [
    ({"read_timeout": 0}, "The read timeout must be a positive integer"),
    ({"protocol": "ftp"}, "The protocol must be HTTP or HTTPS"),
    ({"run_id": ""}, "The run id must be a non-empty string")])
def test_what_is_refused(modules, options, words):
    run_id = options.pop("run_id", "run")
    with pytest.raises(ValueError, match=words):
        modules.etcd_rendezvous_backend.create_backend(
            RendezvousParameters("etcd-v2", "localhost", run_id, 1, 1, **options))
