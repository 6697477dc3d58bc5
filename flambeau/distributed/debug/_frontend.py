"""Pages that show what all processes of a program are at.

A `DebugHandler` has pages, and may have text that is written to files from time to time. It asks
the debug servers of all processes through `fetch_all`.
"""
from __future__ import annotations

import html
import json
import logging
import threading
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

from flambeau.distributed.debug._store import get_world_size, tcpstore_client

logger = logging.getLogger(__name__)
_DEFAULT_FETCH_TIMEOUT = 60.0
_PAGE = """<!doctype html>
<title>{title} - distributed</title>
<style>body {{ font-family: sans-serif; margin: 1em 2em }} pre {{ background: #f4f4f4;
padding: 1em; overflow: auto }} nav a {{ margin-right: 1em }}</style>
<nav>{links}</nav>
<h1>{title}</h1>
{body}
"""


@dataclass(slots=True)
class Response:
    """What a server has answered."""

    status_code: int
    text: str

    def raise_for_status(self) -> None:
        """Raise if it was refused."""
        if self.status_code != 200:
            raise RuntimeError(f"HTTP {self.status_code}: {self.text}")

    def json(self) -> Any:
        """The text, as what it says in JSON."""
        return json.loads(self.text)


@dataclass(slots=True)
class NavLink:
    """A link at the top of all pages."""

    path: str
    label: str


@dataclass(slots=True)
class Route:
    """A page: where, and the function that gives it."""

    path: str
    handler: Callable[[HTTPRequestHandler], bytes]


# ---- asking all processes -----------------------------------------------------------------------

def _fetched(url: str, timeout: float) -> Response:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"),
                                    timeout=timeout) as answer:
            return Response(answer.status, answer.read().decode())
    except urllib.error.HTTPError as error:
        return Response(error.code, error.read().decode())
    except OSError as error:
        return Response(503, f"{url} does not answer: {error}")


def fetch_thread_pool(urls: list[str], timeout: float) -> list[Response]:
    """What all addresses answer, asked at once."""
    with ThreadPoolExecutor(max(1, min(len(urls), 64))) as pool:
        return list(pool.map(lambda url: _fetched(url, timeout), urls))


def fetch_all(endpoint: str, args: str = "", *, timeout: float) -> tuple[list[str], list[Response]]:
    """The addresses of the servers of all processes, and what they answer."""
    store = tcpstore_client()
    addresses = [store.get(f"rank{rank}").decode() for rank in range(get_world_size())]
    return addresses, fetch_thread_pool(
        [f"{address}/handler/{endpoint}?{args}" for address in addresses], timeout)


def format_fetch_summary(addrs: list[str], resps: list[Response]) -> str | None:
    """Which processes have not answered; None if all have."""
    failed = [f"rank {rank} ({address}): {answer.status_code} {answer.text}"
              for rank, (address, answer) in enumerate(zip(addrs, resps))
              if answer.status_code != 200]
    return None if not failed else f"{len(failed)} of {len(addrs)} ranks failed:\n" + \
        "\n".join(failed)


def format_json(blob: str) -> str:
    """JSON in lines."""
    return json.dumps(json.loads(blob), indent=2)


# ---- pages --------------------------------------------------------------------------------------

class DebugHandler(ABC):
    """A part of the pages."""

    fetch_timeout: float = _DEFAULT_FETCH_TIMEOUT

    @abstractmethod
    def routes(self) -> list[Route]:
        """Its pages."""

    @abstractmethod
    def nav_links(self) -> list[NavLink]:
        """Links to them."""

    def templates(self) -> dict[str, str]:
        """Texts of pages by name, for `render_template`, with `{names}` of what is filled in."""
        return {}

    def dump(self) -> str | None:
        """What is written to a file from time to time; None for nothing."""
        return None

    def dump_filename(self) -> str:
        """The beginning of the names of these files."""
        return type(self).__name__.removesuffix("Handler").lower()


class _FetchedHandler(DebugHandler):
    """A page with what all processes answer to one question."""

    def __init__(self, name: str, title: str):
        self.name, self.title = name, title

    def routes(self) -> list[Route]:
        """One page."""
        return [Route(f"/{self.name}", self._page)]

    def nav_links(self) -> list[NavLink]:
        """One link."""
        return [NavLink(f"/{self.name}", self.title)]

    def _page(self, request: HTTPRequestHandler) -> bytes:
        body = "".join(f"<h2>Rank {rank}: {html.escape(address)}</h2><pre>{html.escape(text)}"
                       "</pre>" for rank, address, text in self._texts(request.get_raw_query()))
        return request.frontend.render_page(self.title, body)

    def _texts(self, args: str = "") -> list[tuple[int, str, str]]:
        addresses, answers = fetch_all(self.name, args, timeout=self.fetch_timeout)
        return [(rank, address, answer.text)
                for rank, (address, answer) in enumerate(zip(addresses, answers))]

    def dump(self) -> str | None:
        """The same, as text."""
        return "\n".join(f"=== Rank {rank}: {address}\n{text}"
                         for rank, address, text in self._texts())

    def dump_filename(self) -> str:
        """The name of the question."""
        return self.name


class TCPStoreHandler(DebugHandler):
    """A page with the entries of the store."""

    def routes(self) -> list[Route]:
        """One page."""
        return [Route("/tcpstore", self._page)]

    def nav_links(self) -> list[NavLink]:
        """One link."""
        return [NavLink("/tcpstore", "TCPStore")]

    def _page(self, request: HTTPRequestHandler) -> bytes:
        return request.frontend.render_page(
            "TCPStore", f"<pre>{html.escape(self.dump() or '')}</pre>")

    def dump(self) -> str | None:
        """The keys and the beginnings of the values."""
        store = tcpstore_client(prefix="")
        return "\n".join(f"{key}: {store.get(key)[:100]!r}" for key in sorted(store.list_keys()))


def default_handlers() -> list[DebugHandler]:
    """Stacks, profiles and the store."""
    return [_FetchedHandler("dump_traceback", "Stacks"),
            _FetchedHandler("torch_profile", "Profile"), TCPStoreHandler()]


class HTTPRequestHandler(BaseHTTPRequestHandler):
    """A request for a page."""

    frontend: FrontendServer

    def log_message(self, format: str, *args: Any) -> None:
        """Tells the logger."""
        logger.debug(format, *args)

    def do_GET(self) -> None:
        """Give a page."""
        self.frontend._handle_request(self)

    def get_path(self) -> str:
        """The path, without what follows a question mark."""
        return urlparse(self.path).path

    def get_raw_query(self) -> str:
        """What follows the question mark."""
        return urlparse(self.path).query

    def get_query(self) -> dict[str, list[str]]:
        """The same, by name."""
        return parse_qs(self.get_raw_query())

    def get_query_arg(self, name: str, default: Any = None, type: Callable[[str], Any] = str
                      ) -> Any:
        """One value of it."""
        found = self.get_query().get(name)
        return default if found is None else type(found[0])


class FrontendServer:
    """Serves the pages of some handlers at a port, 0 for a free one."""

    def __init__(self, port: int, handlers: list[DebugHandler] | None = None):
        self.handlers = default_handlers() if handlers is None else handlers
        self._routes = {route.path: route for one in self.handlers for route in one.routes()}
        self._templates = {name: text for one in self.handlers
                           for name, text in one.templates().items()}
        own = type("_Request", (HTTPRequestHandler,), {"frontend": self})
        self._server = ThreadingHTTPServer(("", port), own)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._serve, daemon=True, name="debug_frontend")
        self._thread.start()

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=0.1)

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def _handle_request(self, req: HTTPRequestHandler) -> None:
        route = self._routes.get(req.get_path())
        status = 200
        try:
            if req.get_path() == "/":
                body = self.render_page("Debug server", "")
            elif route is None:
                status, body = 404, b"not found"
            else:
                body = route.handler(req)
        except Exception as error:
            logger.exception("a page could not be made")
            status, body = 500, f"{type(error).__name__}: {error}".encode()
        req.send_response(status)
        req.send_header("Content-Type", "text/html; charset=utf-8")
        req.send_header("Content-Length", str(len(body)))
        req.end_headers()
        req.wfile.write(body)

    def render_page(self, title: str, body: str) -> bytes:
        """A page with the links of all handlers at its top; `body` is HTML."""
        links = "".join(f'<a href="{link.path}">{html.escape(link.label)}</a>'
                        for one in self.handlers for link in one.nav_links())
        return _PAGE.format(title=html.escape(title), links=links, body=body).encode()

    def render_template(self, template: str, **kwargs: object) -> bytes:
        """A page made of a handler's text of that name."""
        text = self._templates[template].format(**{k: html.escape(str(v))
                                                   for k, v in kwargs.items()})
        return self.render_page(str(kwargs.get("title", template)), text)


class PeriodicDumper:
    """Writes what handlers have to say into a folder, again and again."""

    def __init__(self, handlers: list[DebugHandler], output_dir: str,
                 interval_seconds: float = 60.0):
        self._handlers, self._folder = handlers, Path(output_dir)
        self._interval, self._stopped = interval_seconds, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="debug_dumper")

    def start(self) -> None:
        """Begin."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            now = time.strftime("%Y%m%d_%H%M%S")
            for handler in self._handlers:
                try:
                    text = handler.dump()
                except Exception:
                    logger.exception("%s has nothing to write", handler.dump_filename())
                    continue
                if text is not None:
                    (self._folder / f"{handler.dump_filename()}_{now}.txt").write_text(text)


def main(port: int, dump_dir: str | None, dump_interval: float, handlers: list[DebugHandler],
         enabled_dumps: set[str] | None, fetch_timeout: float = _DEFAULT_FETCH_TIMEOUT) -> None:
    """The program of the process that serves the pages."""
    for handler in handlers:
        handler.fetch_timeout = fetch_timeout
    server = FrontendServer(port, handlers)
    if dump_dir is not None:
        PeriodicDumper([one for one in handlers
                        if enabled_dumps is None or one.dump_filename() in enabled_dumps],
                       dump_dir, dump_interval).start()
    server.join()
