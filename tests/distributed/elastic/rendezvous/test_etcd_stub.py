"""The names of python-etcd where that is not installed."""
import sys

import pytest

from flambeau.distributed.elastic.rendezvous import RendezvousParameters, _etcd_stub


@pytest.mark.parametrize("name", [
    "EtcdAlreadyExist", "EtcdCompareFailed", "EtcdKeyNotFound", "EtcdWatchTimedOut",
    "EtcdEventIndexCleared", "EtcdException", "EtcdResult", "Client"])
def test_who_uses_them_learns_that_it_is_missing(name):
    with pytest.raises(ImportError, match=r"^The 'etcd' module is required but not installed.$"):
        getattr(_etcd_stub, name)()


def test_a_rendezvous_says_so():
    if "etcd" in sys.modules:
        pytest.skip("python-etcd is installed")
    from flambeau.distributed.elastic.rendezvous import etcd_rendezvous
    with pytest.raises(_etcd_stub.EtcdStubError):
        etcd_rendezvous.create_rdzv_handler(RendezvousParameters("etcd", "localhost:2379", "1",
                                                                 1, 2))
