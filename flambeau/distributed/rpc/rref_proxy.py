"""Methods of a value, called where it is."""
from __future__ import annotations

from functools import partial
from typing import Any

from flambeau.distributed.rpc import functions
from flambeau.distributed.rpc.constants import UNSET_RPC_TIMEOUT

__all__: list[str] = []


def _local_invoke(rref: Any, func_name: str, args: Any, kwargs: Any) -> Any:
    return getattr(rref.local_value(), func_name)(*args, **kwargs)


@functions.async_execution
def _local_invoke_async_execution(rref: Any, func_name: str, args: Any, kwargs: Any) -> Any:
    return getattr(rref.local_value(), func_name)(*args, **kwargs)


def _invoke_rpc(rref: Any, rpc_api: Any, func_name: str, timeout: float, *args: Any,
                **kwargs: Any) -> Any:
    kind = rref._get_type(timeout)
    function: Any = _local_invoke
    method = getattr(kind, func_name)
    if hasattr(method, "_wrapped_async_rpc_function"):
        function = _local_invoke_async_execution
    return rpc_api(rref.owner(), function, args=(rref, func_name, args, kwargs), timeout=timeout)


class RRefProxy:
    """`proxy.method(...)` calls a method of the value that `rref` refers to, by `rpc_api`."""

    def __init__(self, rref: Any, rpc_api: Any, timeout: float = UNSET_RPC_TIMEOUT):
        self.rref, self.rpc_api, self.rpc_timeout = rref, rpc_api, timeout

    def __getattr__(self, func_name: str) -> Any:
        return partial(_invoke_rpc, self.rref, self.rpc_api, func_name, self.rpc_timeout)
