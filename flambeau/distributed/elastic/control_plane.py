"""A way to ask a worker from outside what it is doing."""
from __future__ import annotations

import os
import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlparse

from flambeau.distributed.elastic.multiprocessing.errors import record

__all__ = ["worker_main"]

TORCH_WORKER_SERVER_SOCKET = "TORCH_WORKER_SERVER_SOCKET"


def _dump_stacks() -> str:
    """Where all threads are."""
    import sys
    import traceback
    return "\n".join(f"Thread {number}:\n{''.join(traceback.format_stack(frame))}"
                     for number, frame in sys._current_frames().items())


HANDLERS: dict[str, Any] = {"ping": lambda: "pong", "dump_traceback": _dump_stacks}


class WorkerHandler(BaseHTTPRequestHandler):
    """`POST /handler/NAME` runs a handler, `GET /handler/` lists them."""

    def do_POST(self) -> None:
        asked = urlparse(self.path)
        run = HANDLERS.get(asked.path.removeprefix("/handler/"))
        if run is None:
            self._answer(404, f"Handler {self.path} not found")
            return
        given = {name: float(values[0]) for name, values in parse_qs(asked.query).items()}
        self._answer(200, run(**given))

    def do_GET(self) -> None:
        self._answer(200, repr(sorted(HANDLERS)) if self.path == "/handler/" else "")

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "local"

    def log_message(self, format: str, *args: Any) -> None:
        """Tells nobody."""


@contextmanager
def _worker_server(socket_path: str) -> Iterator[None]:
    """Inside, this process answers at a socket of the file system."""
    with socketserver.ThreadingUnixStreamServer(socket_path, WorkerHandler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
            os.unlink(socket_path)


@record
@contextmanager
def worker_main() -> Iterator[None]:
    """Wrap the main part of a worker in this: it answers at the socket that the variable
    `TORCH_WORKER_SERVER_SOCKET` names, if it is set.

    >>> with worker_main():
    ...     print("training")
    training
    """
    with ExitStack() as stack:
        path = os.environ.get(TORCH_WORKER_SERVER_SOCKET)
        if path is not None:
            stack.enter_context(_worker_server(path))
        yield
