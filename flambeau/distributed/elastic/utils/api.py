"""Variables of the environment, free ports, and macros in arguments of workers."""
from __future__ import annotations

import os
import socket
from string import Template
from typing import Any


def get_env_variable_or_raise(env_name: str) -> str:
    """A variable of the environment; ValueError if it is not set."""
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port() -> socket.socket:
    """A socket of this machine that listens on a free port.

    >>> with get_socket_with_port() as listening:
    ...     listening.getsockname()[1] > 0
    True
    """
    error: OSError | None = None
    for family, kind, protocol, _, _ in socket.getaddrinfo(
            host="localhost", port=None, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM):
        listening = socket.socket(family, kind, protocol)
        try:
            listening.bind(("localhost", 0))
            listening.listen(0)
            return listening
        except OSError as raised:
            listening.close()
            error = raised
    raise RuntimeError("Failed to create a socket") from error


class macros:
    """Names in arguments that each worker replaces by its own values.

    >>> macros.substitute(["--file", f"out_{macros.local_rank}.txt", 3], local_rank="1")
    ['--file', 'out_1.txt', 3]
    """

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[Any], local_rank: str) -> list[Any]:
        """The arguments for the worker of that local rank."""
        return [Template(arg).safe_substitute(local_rank=local_rank)
                if isinstance(arg, str) else arg for arg in args]
