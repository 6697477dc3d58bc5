"""A place to ask whether an agent is alive: none is there, but one can be put in."""
from __future__ import annotations

from collections.abc import Callable

from flambeau.distributed.elastic.utils.logging import get_logger

__all__ = ["HealthCheckServer", "create_healthcheck_server"]

log = get_logger(__name__)


class HealthCheckServer:
    """What a server has to do; this one only says that it does nothing."""

    def __init__(self, alive_callback: Callable[[], int], port: int, timeout: int):
        self._alive_callback, self._port, self._timeout = alive_callback, port, timeout

    @property
    def alive_callback(self) -> Callable[[], int]:
        """Gives the time when the agent last made progress."""
        return self._alive_callback

    def start(self) -> None:
        """Start to answer."""
        log.warning("No health check server started")

    def stop(self) -> None:
        """Stop to answer."""
        log.info("Stopping noop health check server.")


def create_healthcheck_server(alive_callback: Callable[[], int], port: int, timeout: int
                              ) -> HealthCheckServer:
    """A server at a port."""
    return HealthCheckServer(alive_callback, port, timeout)
