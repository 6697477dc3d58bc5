"""Transports by name: TENSORPIPE, which here is TCP, and others that programs add."""
from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau.distributed.rpc import constants

__all__ = ["BackendType", "BackendValue", "backend_registered", "construct_rpc_backend_options",
           "init_backend", "register_backend"]


class BackendValue(NamedTuple):
    """How a transport makes its options and its agent."""

    construct_rpc_backend_options_handler: Callable[..., Any]
    init_backend_handler: Callable[..., Any]


_values: dict[str, BackendValue] = {}


def _make_enum() -> Any:
    found: Any = enum.Enum("BackendType", _values)      # type: ignore[misc]
    found.__repr__ = lambda self: f"BackendType.{self.name}"    # type: ignore[attr-defined]
    found.__doc__ = "The transports that are there."
    return found


def backend_registered(backend_name: str) -> bool:
    """Is there a transport of that name?

    >>> backend_registered("TENSORPIPE")
    True
    """
    return backend_name in BackendType.__members__


def register_backend(backend_name: str, construct_rpc_backend_options_handler: Any,
                     init_backend_handler: Any) -> Any:
    """Add a transport: functions that make its options and its agent."""
    global BackendType
    if backend_registered(backend_name):
        raise RuntimeError(f"RPC backend {backend_name}: already registered")
    _values[backend_name] = BackendValue(construct_rpc_backend_options_handler,
                                         init_backend_handler)
    BackendType = _make_enum()
    return BackendType[backend_name]


def construct_rpc_backend_options(backend: Any,
                                  rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
                                  init_method: str = constants.DEFAULT_INIT_METHOD,
                                  **kwargs: Any) -> Any:
    """Options of a transport."""
    return backend.value.construct_rpc_backend_options_handler(rpc_timeout, init_method, **kwargs)


def init_backend(backend: Any, *args: Any, **kwargs: Any) -> Any:
    """The agent of a transport."""
    return backend.value.init_backend_handler(*args, **kwargs)


def _check_types(store: Any, options: Any, wanted: type) -> None:
    """Refuse what makes no agent: another store, or the options of another transport."""
    from flambeau.distributed._c10d.stores import Store
    if not isinstance(store, Store):
        raise TypeError(f"`store` must be a c10d::Store. {store}")
    if not isinstance(options, wanted):
        raise TypeError(f"`rpc_backend_options` must be a `{wanted.__name__}`. {options}")


def _tensorpipe_construct_rpc_backend_options_handler(
        rpc_timeout: float, init_method: str,
        num_worker_threads: int = constants.DEFAULT_NUM_WORKER_THREADS,
        _transports: Any = None, _channels: Any = None, **kwargs: Any) -> Any:
    from flambeau.distributed.rpc.options import TensorPipeRpcBackendOptions
    return TensorPipeRpcBackendOptions(
        rpc_timeout=rpc_timeout, init_method=init_method, num_worker_threads=num_worker_threads,
        _transports=_transports, _channels=_channels)


def _tensorpipe_init_backend_handler(store: Any, name: str, rank: int, world_size: int | None,
                                     rpc_backend_options: Any) -> Any:
    from flambeau.distributed.rpc import api
    from flambeau.distributed.rpc.agent import TensorPipeAgent
    from flambeau.distributed.rpc.options import TensorPipeRpcBackendOptions
    _check_types(store, rpc_backend_options, TensorPipeRpcBackendOptions)
    agent = TensorPipeAgent(store, name, rank, world_size, rpc_backend_options)
    api._init_rpc_states(agent)
    if agent.is_static_group:
        api._all_gather(None, timeout=rpc_backend_options.rpc_timeout)      # all are ready
    return agent


_values["TENSORPIPE"] = BackendValue(_tensorpipe_construct_rpc_backend_options_handler,
                                     _tensorpipe_init_backend_handler)
BackendType = _make_enum()
