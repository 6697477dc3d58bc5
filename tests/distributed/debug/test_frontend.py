"""A server that shows what all processes are at."""
import os
import socket
import time
import urllib.error
import urllib.request

import pytest

from flambeau.distributed import TCPStore, debug
from flambeau.distributed.debug import _frontend
from flambeau.distributed.elastic.utils.distributed import get_free_port


def page(port, path):
    return urllib.request.urlopen(f"http://localhost:{port}{path}", timeout=30).read().decode()


@pytest.fixture
def server(monkeypatch):
    port = get_free_port()
    for name, value in (("RANK", 0), ("WORLD_SIZE", 1), ("MASTER_ADDR", "127.0.0.1"),
                        ("MASTER_PORT", port)):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    store = TCPStore("127.0.0.1", port, is_master=True)
    store.set("shown", "value")
    started = []

    class Context:
        class Process:
            def __init__(self, target, daemon, args):
                self.args = args

            def start(self):
                started.append(self.args)

            def terminate(self):
                started.append("ended")

            def join(self):
                pass
    monkeypatch.setattr(debug.multiprocessing, "get_context", lambda method: Context)
    debug.start_debug_server(port=1)
    yield started
    debug.stop_debug_server()


def test_pages(server, tmp_path):
    assert server[0][0] == 1
    with pytest.raises(RuntimeError, match="debug server already started"):
        debug.start_debug_server()
    handlers = _frontend.default_handlers()
    frontend = _frontend.FrontendServer(0, handlers)
    try:
        assert 'href="/dump_traceback">Stacks' in page(frontend.port, "/")
        stacks = page(frontend.port, "/dump_traceback")
        assert "Rank 0: http://localhost:" in stacks and "test_frontend.py" in stacks
        assert "traceEvents" in page(frontend.port, "/torch_profile?duration=0.1")
        assert "shown: b&#x27;value&#x27;" in page(frontend.port, "/tcpstore")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            page(frontend.port, "/nothing")
    finally:
        frontend.stop()
    dumper = _frontend.PeriodicDumper(handlers[:1], str(tmp_path), 0.05)
    dumper.start()
    end = time.monotonic() + 10
    while not os.listdir(tmp_path) and time.monotonic() < end:
        time.sleep(0.02)
    dumper.stop()
    found = sorted(tmp_path.iterdir())[0]
    assert found.name.startswith("dump_traceback_") and "=== Rank 0" in found.read_text()


def test_answers():
    answer = _frontend.Response(200, '{"a": 1}')
    answer.raise_for_status()
    assert answer.json() == {"a": 1}
    with pytest.raises(RuntimeError, match="HTTP 404: no"):
        _frontend.Response(404, "no").raise_for_status()
    assert _frontend.format_fetch_summary(["x"], [answer]) is None
    bad = _frontend.fetch_thread_pool([f"http://localhost:{get_free_port()}/"], 1.0)
    assert "1 of 1 ranks failed" in _frontend.format_fetch_summary(["x"], bad)
    assert _frontend.format_json('{"a":1}') == '{\n  "a": 1\n}'
