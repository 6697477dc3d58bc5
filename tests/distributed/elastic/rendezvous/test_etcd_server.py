"""An etcd that this process starts."""
from __future__ import annotations

import subprocess
import sys

import pytest

from flambeau.distributed.elastic.rendezvous import etcd_server


def test_before_it_starts():
    server = etcd_server.EtcdServer()
    assert server.get_endpoint() == "localhost:-1"
    assert (server.get_host(), server.get_port()) == ("localhost", -1)
    with pytest.raises(RuntimeError, match="No etcd server process started"):
        server._get_etcd_server_process()
    server.stop()


def test_a_port_that_is_held():
    with etcd_server.find_free_port() as free, etcd_server.find_free_port() as other:
        assert free.getsockname()[1] != other.getsockname()[1]


def test_a_server_is_ended(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    process = subprocess.Popen([sys.executable, "-Sc", "import time; time.sleep(60)"])
    etcd_server.stop_etcd(process, str(folder))
    assert process.poll() is not None and not folder.exists()
    etcd_server.stop_etcd(process)
