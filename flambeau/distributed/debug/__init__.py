"""A server that shows what all processes of a program are at: their stacks, a profile, the store.

Each process calls `start_debug_server`; the pages are at a port of the first.
"""
from __future__ import annotations

import logging
import multiprocessing
import socket
import threading
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal

from flambeau.distributed.debug._store import get_rank, tcpstore_client

if TYPE_CHECKING:
    from flambeau.distributed.debug._frontend import DebugHandler

__all__ = ["start_debug_server", "stop_debug_server"]

logger = logging.getLogger(__name__)
_WORKER_SERVER: ThreadingHTTPServer | None = None
_DEBUG_SERVER_PROC: Any = None


def start_debug_server(port: int = 25999, worker_port: int = 0,
                       start_method: Literal["fork", "spawn", "forkserver"] | None = None,
                       dump_dir: str | None = None, dump_interval: float = 60.0,
                       enabled_dumps: set[str] | None = None,
                       handlers: list[DebugHandler] | None = None,
                       fetch_timeout: float = 60.0) -> None:
    """Let this process answer questions; in the first process, also start one that serves the
    pages.

    The processes meet in the store at MASTER_ADDR and MASTER_PORT; RANK and WORLD_SIZE have to be
    set, as `torchrun` does.

    Args:
        port: of the pages, in the first process.
        worker_port: where this process answers, 0 for a free port.
        start_method: how the process of the pages is started.
        dump_dir: a folder into which what the pages say is written, too.
        dump_interval: every so many seconds.
        enabled_dumps: which of the pages, by their names; all by default.
        handlers: the parts of the pages; stacks, profiles and the store by default.
        fetch_timeout: seconds to wait for the answers of the processes.
    """
    global _WORKER_SERVER, _DEBUG_SERVER_PROC
    from flambeau.distributed.debug import _frontend, _handlers
    from flambeau.distributed.elastic.control_plane import WorkerHandler
    if _WORKER_SERVER is not None:
        raise RuntimeError("debug server already started")
    _WORKER_SERVER = ThreadingHTTPServer(("", worker_port), WorkerHandler)
    _WORKER_SERVER.daemon_threads = True
    threading.Thread(target=_WORKER_SERVER.serve_forever, kwargs={"poll_interval": 0.1},
                     daemon=True, name="debug_server").start()
    address = f"http://{socket.gethostname()}:{_WORKER_SERVER.server_address[1]}"
    tcpstore_client().set(f"rank{get_rank()}", address)
    logger.info("the debug server of rank %s is at %s", get_rank(), address)
    if get_rank() == 0:
        parts = _frontend.default_handlers() if handlers is None else handlers
        context: Any = multiprocessing.get_context(start_method or "spawn")
        _DEBUG_SERVER_PROC = context.Process(
            target=_frontend.main, daemon=True,
            args=(port, dump_dir, dump_interval, parts, enabled_dumps, fetch_timeout))
        _DEBUG_SERVER_PROC.start()


def stop_debug_server() -> None:
    """End what `start_debug_server` has started."""
    global _WORKER_SERVER, _DEBUG_SERVER_PROC
    if _WORKER_SERVER is None:
        raise RuntimeError("debug server not started")
    if _DEBUG_SERVER_PROC is not None:
        _DEBUG_SERVER_PROC.terminate()
        _DEBUG_SERVER_PROC.join()
    _WORKER_SERVER.shutdown()
    _WORKER_SERVER.server_close()
    _WORKER_SERVER = _DEBUG_SERVER_PROC = None
