"""Where processes listen and reach each other: names, interfaces, IPv4 and IPv6."""
from __future__ import annotations

import errno
import socket
from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._c10d.stores import tcp_store
from flambeau.distributed._c10d.transport import addresses
from flambeau.distributed.elastic.utils.distributed import get_free_port
from flambeau.distributed.rpc.agent import _chosen_address

SECONDS = timedelta(seconds=3)
LOOPBACK = next((name for _, name in socket.if_nameindex() if name in ("lo", "lo0")), None)


def has_ipv6():
    try:
        addresses.listen("::1", 1).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="there is no IPv6 here")


@pytest.fixture
def no_route(monkeypatch):
    """As on a node without a default route."""
    real = socket.socket

    class Isolated(real):
        def connect(self, address):
            if self.type == socket.SOCK_DGRAM:
                raise OSError(errno.ENETUNREACH, "Network is unreachable")
            super().connect(address)

    monkeypatch.setattr(socket, "socket", Isolated)


def server(host="localhost"):
    return dist.TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=SECONDS)


def client(host, port):
    return dist.TCPStore(host, port, wait_for_workers=False, timeout=SECONDS)


def test_a_server_answers_at_all_addresses_of_its_machine():
    store = server()
    store.set("key", "value")
    for host in {"localhost", "127.0.0.1", "127.0.0.2", addresses.outward_address()}:
        assert client(host, store.port).get("key") == b"value"


@needs_ipv6
@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
def test_a_server_answers_over_both_protocols(host):
    store = server(host)
    for other in ("::1", "127.0.0.1"):
        client(other, store.port).set(other, "value")
    assert store.check(["::1", "127.0.0.1"])


def test_a_server_without_ipv6(monkeypatch):
    real = socket.create_server

    def create_server(*args, family=socket.AF_INET, **settings):
        if family == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return real(*args, family=family, **settings)

    monkeypatch.setattr(socket, "create_server", create_server)
    with tcp_store._listen_everywhere(0) as listening:
        assert listening.family == socket.AF_INET


def test_a_port_that_is_taken():
    store = server()
    with pytest.raises(dist.DistNetworkError, match="failed to listen on any local network "
                                                    f"address. port: {store.port}"):
        dist.TCPStore("127.0.0.1", store.port, is_master=True, wait_for_workers=False)


def test_the_address_is_that_from_which_the_store_is_reached(no_route):
    store = dist.PrefixStore("prefix", server("127.0.0.1"))
    assert addresses.own_address(store, 0, 2) == "127.0.0.1"
    assert addresses.own_address(store, 0, 2, "198.51.100.7") == "198.51.100.7"
    assert addresses.own_address(dist.HashStore(), 0, 2) == "127.0.0.1"


def test_stores_in_files_tell_machines_apart(monkeypatch, tmp_path):
    store = dist.FileStore(str(tmp_path / "store"))
    store.set("machine/1", addresses.machine())
    assert addresses.own_address(store, 0, 2) == "127.0.0.1"
    store.set("machine/1", "another")
    monkeypatch.setattr(addresses, "outward_address", lambda: "198.51.100.7")
    assert addresses.own_address(store, 0, 2) == "198.51.100.7"


def test_without_a_route_the_name_tells(no_route, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "127.0.0.1")
    assert addresses.outward_address() == "127.0.0.1"
    # not an address of this machine, then no name at all
    monkeypatch.setattr(socket, "gethostname", lambda: "198.51.100.7")
    assert addresses.outward_address() == "127.0.0.1"

    def unknown(*args, **settings):
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert addresses.outward_address() == "127.0.0.1"


@pytest.mark.skipif(LOOPBACK is None, reason="the loopback interface has another name here")
def test_an_interface_by_its_name(monkeypatch):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    assert addresses.interface_of("GLOO_SOCKET_IFNAME") is None
    for names in (LOOPBACK, f"{LOOPBACK},other"):
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", names)
        assert addresses.interface_of("GLOO_SOCKET_IFNAME") == "127.0.0.1"
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "nonsense")
    with pytest.raises(RuntimeError, match="Unable to find address for: nonsense"):
        addresses.interface_of("GLOO_SOCKET_IFNAME")


def sum_over_ipv6(rank, port):
    dist.init_process_group("gloo", init_method=f"tcp://[::1]:{port}", rank=rank, world_size=2,
                            timeout=timedelta(seconds=30))
    total = torch.ones(2)
    dist.all_reduce(total)
    assert total.tolist() == [2, 2]


@needs_ipv6
def test_a_group_over_ipv6(processes):
    processes(sum_over_ipv6, get_free_port(), group=False)


def test_gloo_takes_the_interface_by_its_name(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "nonsense")
    with pytest.raises(RuntimeError, match="Unable to find address for: nonsense"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def test_rpc_takes_another_interface(monkeypatch, caplog):
    monkeypatch.setenv("TP_SOCKET_IFNAME", "nonsense")
    assert _chosen_address() is None
    assert "Unable to find address for: nonsense" in caplog.text
