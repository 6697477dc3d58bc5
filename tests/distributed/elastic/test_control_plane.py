"""Asking a worker what it is doing."""
from __future__ import annotations

import socket

from flambeau.distributed.elastic.control_plane import worker_main


def ask(path, request):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(f"{request} HTTP/1.0\r\nContent-Length: 0\r\n\r\n".encode())
        return connection.makefile().read()


def test_a_worker_answers(monkeypatch, tmp_path):
    path = tmp_path / "socket"
    monkeypatch.setenv("TORCH_WORKER_SERVER_SOCKET", str(path))
    with worker_main():
        assert ask(path, "POST /handler/ping").endswith("\n\npong")
        assert "test_a_worker_answers" in ask(path, "POST /handler/dump_traceback")
        assert "404" in ask(path, "POST /handler/none")
    assert not path.exists()
