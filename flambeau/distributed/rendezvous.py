"""How processes find each other: `env://`, `tcp://host:port`, `file:///path`."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlparse

from flambeau.distributed.stores import FileStore, Store, TCPStore

Meeting = tuple[Store, int, int]
_handlers: dict[str, Callable[..., Iterator[Meeting]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Meeting]]) -> None:
    """Make `handler(url, **options)` answer for URLs of a scheme: it yields (store, rank, world
    size), once for each time that the processes meet."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any
               ) -> Iterator[Meeting]:
    """The store, the rank and the world size that a URL stands for."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlparse(url)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    query = dict(parse_qsl(parts.query))
    if rank != -1:
        query["rank"] = str(rank)
    if world_size != -1:
        query["world_size"] = str(world_size)
    return _handlers[parts.scheme](url, query=query, **kwargs)


def _error(message: str, scheme: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: "
                      f"{message}")


def _number(query: dict[str, str], name: str, scheme: str) -> int:
    if name not in query:
        words = name.replace("_", " ")
        raise _error(f"{words} parameter missing", scheme)
    return int(query[name])


def _tcp(url: str, query: dict[str, str], timeout: timedelta = timedelta(minutes=30),
         **kwargs: Any) -> Iterator[Meeting]:
    parts = urlparse(url)
    if parts.port is None:
        raise _error("port number missing", "tcp")
    rank, size = _number(query, "rank", "tcp"), _number(query, "world_size", "tcp")
    yield TCPStore(parts.hostname, parts.port, size, rank == 0, timeout), rank, size
    raise RuntimeError("Unable to perform rerendezvous using tcp:// method")


def _file(url: str, query: dict[str, str], **kwargs: Any) -> Iterator[Meeting]:
    path = urlparse(url).path
    if not path:
        raise _error("path missing", "file")
    rank, size = _number(query, "rank", "file"), _number(query, "world_size", "file")
    yield FileStore(path, size), rank, size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _env(url: str, query: dict[str, str], timeout: timedelta = timedelta(minutes=30),
         **kwargs: Any) -> Iterator[Meeting]:
    def variable(name: str) -> str:
        if name.lower() in query:
            return query[name.lower()]
        if not os.environ.get(name):
            raise _error(f"environment variable {name} expected, but not set", "env")
        return os.environ[name]
    rank, size = int(variable("RANK")), int(variable("WORLD_SIZE"))
    host, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    yield TCPStore(host, port, size, rank == 0, timeout), rank, size
    raise RuntimeError("Unable to perform rerendezvous using env:// method")


for _scheme, _handler in {"tcp": _tcp, "env": _env, "file": _file}.items():
    register_rendezvous_handler(_scheme, _handler)

__all__ = ["register_rendezvous_handler", "rendezvous"]
