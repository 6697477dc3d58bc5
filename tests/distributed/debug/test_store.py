"""Where the debug servers find each other."""
from flambeau.distributed import TCPStore
from flambeau.distributed.debug import _store


def test_the_store_of_the_launcher(monkeypatch):
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "3"), ("MASTER_ADDR", "127.0.0.1"),
                        ("MASTER_PORT", str(server.port))):
        monkeypatch.setenv(name, value)
    assert (_store.get_rank(), _store.get_world_size()) == (1, 3)
    _store.tcpstore_client().set("a", "1")
    assert server.get("debug_server/a") == b"1"
    _store.tcpstore_client("").set("b", "2")
    assert server.get("b") == b"2"
