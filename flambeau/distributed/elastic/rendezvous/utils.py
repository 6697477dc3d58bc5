"""Reading endpoints and options; timers."""
from __future__ import annotations

import ipaddress
import random
import re
import socket
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread
from typing import Any

__all__ = ["parse_rendezvous_endpoint"]


def _parse_rendezvous_config(config_str: str) -> dict[str, str]:
    """Options written `key=value,key=value`.

    >>> _parse_rendezvous_config("join_timeout=60, store_type=tcp")
    {'join_timeout': '60', 'store_type': 'tcp'}
    """
    config: dict[str, str] = {}
    for item in config_str.split(",") if config_str.strip() else ():
        key, _, value = (part.strip() for part in item.partition("="))
        if not key:
            raise ValueError("The rendezvous configuration string must be in format "
                             "<key1>=<value1>,...,<keyN>=<valueN>.")
        if not value:
            raise ValueError(f"The rendezvous configuration option '{key}' must have a value "
                             "specified.")
        config[key] = value
    return config


def _try_parse_port(port_str: str) -> int | None:
    return int(port_str) if re.match(r"^[0-9]+$", port_str) else None


def parse_rendezvous_endpoint(endpoint: str | None, default_port: int) -> tuple[str, int]:
    """Host and port of `host[:port]`.

    >>> parse_rendezvous_endpoint("node7", default_port=29400)
    ('node7', 29400)
    >>> parse_rendezvous_endpoint("[::1]:123", default_port=29400)
    ('::1', 123)
    """
    if endpoint is not None:
        endpoint = endpoint.strip()
    if not endpoint:
        return "localhost", default_port
    host, _, port_text = endpoint.rpartition(":")
    if not host or (endpoint[0] == "[" and endpoint[-1] == "]"):
        host, port_text = endpoint, ""
    if port_text or endpoint.endswith(":"):
        port = _try_parse_port(port_text)
        if port is None or port >= 2 ** 16:
            raise ValueError(f"The port number of the rendezvous endpoint '{endpoint}' must be an "
                             "integer between 0 and 65536.")
    else:
        port = default_port
    if not re.match(r"^[\w\.:-]+$", re.sub(r"^\[|\]$", "", host)) or host[0] == ":":
        raise ValueError(f"The hostname of the rendezvous endpoint '{endpoint}' must be a "
                         "dot-separated list of labels, an IPv4 address, or an IPv6 address.")
    return re.sub(r"^\[|\]$", "", host), port


def _matches_machine_hostname(host: str) -> bool:
    """Is that a name or an address of this machine?"""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if address is not None and address.is_loopback:
        return True
    names = socket.gethostname(), socket.getfqdn()
    if host in names:
        return True
    text = address and str(address)
    for name in names:
        try:
            found = socket.getaddrinfo(name, None, proto=socket.IPPROTO_TCP,
                                       flags=socket.AI_CANONNAME)
        except OSError:
            continue
        if any((canonical and canonical == host) or (text and where[0] == text)
               for _, _, _, canonical, where in found):
            return True
    return False


def _delay(seconds: float | tuple[float, float]) -> None:
    """Sleep that long, or a random time between two."""
    time.sleep(random.uniform(*seconds) if isinstance(seconds, tuple) else seconds)


class _PeriodicTimer:
    """Calls a function every `interval`, in a thread, from `start()` until `cancel()` or until
    the timer is forgotten."""

    def __init__(self, interval: timedelta, function: Callable[..., None], *args: Any,
                 **kwargs: Any):
        self._call = interval.total_seconds(), function, args, kwargs
        self._stop = Event()
        self._name: str | None = None
        self._thread: Thread | None = None
        self._finalizer: Any = None

    @property
    def name(self) -> str | None:
        """The name of the thread."""
        return self._name

    def set_name(self, name: str) -> None:
        """Name the thread, before it starts."""
        if self._thread:
            raise RuntimeError("The timer has already started.")
        self._name = name

    def start(self) -> None:
        """Begin to call."""
        if self._thread:
            raise RuntimeError("The timer has already started.")
        self._thread = Thread(target=self._run, name=self._name or "PeriodicTimer", daemon=True,
                              args=(self._stop, *self._call))
        # the thread does not know the timer, which so can be forgotten
        self._finalizer = weakref.finalize(self, self._stop_thread, self._thread, self._stop)
        self._finalizer.atexit = False
        self._thread.start()

    def cancel(self) -> None:
        """Stop calling."""
        if self._finalizer:
            self._finalizer()

    @staticmethod
    def _run(stop: Event, seconds: float, function: Callable[..., None], args: Any, kwargs: Any
             ) -> None:
        while not stop.wait(seconds):
            function(*args, **kwargs)

    @staticmethod
    def _stop_thread(thread: Thread, stop_event: Event) -> None:
        stop_event.set()
        thread.join()
