"""Agents that lose messages."""
from flambeau.distributed import rpc
from flambeau.distributed.rpc import _testing


def test_the_transport_is_there():
    assert _testing.is_available() is True
    assert rpc.backend_registry.backend_registered("FAULTY_TENSORPIPE")
