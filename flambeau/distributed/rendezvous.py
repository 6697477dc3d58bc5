"""How processes find each other: `env://`, `tcp://host:port`, `file:///path`. Of what `env://`
does not find, Slurm's variables tell."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlparse, urlunparse

from flambeau.distributed import _slurm
from flambeau.distributed._c10d.stores import FileStore, PrefixStore, Store, TCPStore
from flambeau.distributed.constants import default_pg_timeout

Meeting = tuple[Store, int, int]
_rendezvous_handlers: dict[str, Callable[..., Iterator[Meeting]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Meeting]]) -> None:
    """Make `handler(url, **options)` answer for URLs of a scheme: it yields (store, rank, world
    size), once for each time that the processes meet."""
    if scheme in _rendezvous_handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _rendezvous_handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any
               ) -> Iterator[Meeting]:
    """The store, the rank and the world size that a URL stands for."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    return _rendezvous_helper(url, rank, world_size, **kwargs)


def _rendezvous_helper(url: str, rank: int, world_size_opt: int | None, **kwargs: Any
                       ) -> Iterator[Meeting]:
    """Hand a URL, with what else is known in its query, to the handler of its scheme."""
    parts = urlparse(url)
    if parts.scheme not in _rendezvous_handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    query = _query_to_dict(parts.query)
    for name, value in (("rank", rank), ("world_size", world_size_opt)):
        if value not in (-1, None):
            if name in query and query[name] != str(value):
                raise ValueError(f"The url: {url} has {name} argument already, which differs from "
                                 f"the {name} that is given: {value}")
            query[name] = str(value)
    url = urlunparse(parts._replace(query="&".join(f"{k}={v}" for k, v in query.items())))
    return _rendezvous_handlers[parts.scheme](url, **kwargs)


def _query_to_dict(query: str) -> dict[str, str]:
    return dict(parse_qsl(query))


def _rendezvous_error(msg: str) -> ValueError:
    return ValueError("Error initializing torch.distributed using " + msg)


def _error(message: str, scheme: str) -> ValueError:
    return _rendezvous_error(f"{scheme}:// rendezvous: {message}")


def _number(query: dict[str, str], name: str, scheme: str) -> int:
    if name not in query:
        words = name.replace("_", " ")
        raise _error(f"{words} parameter missing", scheme)
    return int(query[name])


def _create_store_from_options(backend_options: Any, rank: int) -> Store:
    """The store that `backend_options.init_method` names."""
    store, _, _ = next(_rendezvous_helper(backend_options.init_method, rank, None))
    return store


def _get_use_libuv_from_query_dict(query_dict: dict[str, str]) -> bool:
    return query_dict.get("use_libuv", os.environ.get("USE_LIBUV", "1")) == "1"


def _torchelastic_use_agent_store() -> bool:
    """Does the agent that has started this process hold the store?"""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True)


def _create_c10d_store(hostname: str, port: int, rank: int, world_size: int, timeout: timedelta,
                       use_libuv: bool = True) -> Store:
    """The store at an address: the first process holds it, unless an agent does already."""
    if not 0 <= port < 2 ** 16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if _torchelastic_use_agent_store():
        store: Store = TCPStore(hostname, port, world_size, False, timeout)
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        return PrefixStore(f"/worker/attempt_{attempt}", store)
    return TCPStore(hostname, port, world_size, rank == 0, timeout, multi_tenant=True)


def _tcp_rendezvous_handler(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any
                            ) -> Iterator[Meeting]:
    parts = urlparse(url)
    if parts.port is None:
        raise _error("port number missing", "tcp")
    query = _query_to_dict(parts.query)
    rank, size = _number(query, "rank", "tcp"), _number(query, "world_size", "tcp")
    yield _create_c10d_store(parts.hostname, parts.port, rank, size, timeout), rank, size
    raise RuntimeError("Unable to perform rerendezvous using tcp:// method")


def _file_rendezvous_handler(url: str, **kwargs: Any) -> Iterator[Meeting]:
    parts = urlparse(url)
    if not parts.path:
        raise _error("path missing", "file")
    query = _query_to_dict(parts.query)
    rank, size = _number(query, "rank", "file"), _number(query, "world_size", "file")
    yield FileStore(parts.path, size), rank, size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _env_rendezvous_handler(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any
                            ) -> Iterator[Meeting]:
    query = _query_to_dict(urlparse(url).query)
    slurm = _slurm.variables()

    def variable(name: str) -> str:
        found = query.get(name.lower()) or os.environ.get(name) or slurm.get(name)
        if not found:
            raise _error(f"environment variable {name} expected, but not set", "env")
        return found
    rank, size = int(variable("RANK")), int(variable("WORLD_SIZE"))
    host, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    yield _create_c10d_store(host, port, rank, size, timeout), rank, size
    raise RuntimeError("Unable to perform rerendezvous using env:// method")


for _scheme, _handler in {"tcp": _tcp_rendezvous_handler, "env": _env_rendezvous_handler,
                          "file": _file_rendezvous_handler}.items():
    register_rendezvous_handler(_scheme, _handler)

__all__ = ["register_rendezvous_handler", "rendezvous"]
