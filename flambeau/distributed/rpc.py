"""Calls of functions in other processes. There is one process: NotImplementedError says so."""
from __future__ import annotations

from typing import Any

__all__ = ["init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown"]


def _elsewhere(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.distributed.rpc.{name}: flambeau does not call functions "
                                  "in other processes")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "NotImplementedError: there are no other processes."
    return function


init_rpc, remote, rpc_async, rpc_sync, shutdown = (_elsewhere(_name) for _name in (
    "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown"))


def is_available() -> bool:
    """Can functions be called in other processes? No."""
    return False


def _is_current_rpc_agent_set() -> bool:
    return False
