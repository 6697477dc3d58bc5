"""Calls of functions in other processes.

Each process calls `init_rpc` with a name, and from then on can call functions in the others by
name: `rpc_sync`, `rpc_async`, and `remote`, whose value stays where it was made (`RRef`).
`torch.distributed.autograd` propagates gradients through such calls.
"""
from __future__ import annotations

import logging
import os
import threading
from datetime import timedelta
from typing import Any

from flambeau.distributed.rpc import api, backend_registry, functions
from flambeau.distributed.rpc import rref as _rref
from flambeau.distributed.rpc.agent import RpcAgent, TensorPipeAgent
from flambeau.distributed.rpc.api import *
from flambeau.distributed.rpc.api import _set_rpc_timeout, get_rpc_timeout
from flambeau.distributed.rpc.backend_registry import *
from flambeau.distributed.rpc.constants import (
    _DEFAULT_INIT_METHOD,
    _DEFAULT_NUM_WORKER_THREADS,
    _DEFAULT_RPC_TIMEOUT_SEC,
    _UNSET_RPC_TIMEOUT,
)
from flambeau.distributed.rpc.current import (
    WorkerInfo,
    _get_current_rpc_agent,
    _is_current_rpc_agent_set,
    _reset_current_rpc_agent,
    _set_and_start_rpc_agent,
)
from flambeau.distributed.rpc.options import (
    RpcBackendOptions,
    TensorPipeRpcBackendOptions,
    _TensorPipeRpcBackendOptionsBase,
)
from flambeau.distributed.rpc.rref import PyRRef

__all__ = ["AllGatherStates", "BackendType", "BackendValue", "RRef", "TensorPipeRpcBackendOptions",
           "backend_registered", "construct_rpc_backend_options", "get_worker_info", "init_backend",
           "init_rpc", "is_available", "method_factory", "new_method", "register_backend", "remote",
           "rpc_async", "rpc_sync", "shutdown"]

logger = logging.getLogger(__name__)
_init_counter, _init_counter_lock = 0, threading.Lock()
_is_tensorpipe_available = True


def is_available() -> bool:
    """True: functions can be called in other processes."""
    return True


def init_rpc(name: str, backend: Any = None, rank: int = -1, world_size: int | None = None,
             rpc_backend_options: Any = None) -> None:
    """Let this process call functions in others, and others in this one.

    Args:
        name: the name of this worker: letters, digits, and `_`, `-`, `:`.
        backend: the transport; TENSORPIPE by default, which here is TCP.
        rank: the number of this worker.
        world_size: how many workers there are; None lets them come and go.
        rpc_backend_options: its options.
    """
    from flambeau.distributed.rendezvous import _create_store_from_options
    if backend is not None and not isinstance(backend, backend_registry.BackendType):
        raise TypeError("Argument backend must be a member of BackendType")
    if rpc_backend_options is not None and not isinstance(rpc_backend_options,
                                                          RpcBackendOptions):
        raise TypeError("Argument rpc_backend_options must be an instance of RpcBackendOptions")
    if backend is None and rpc_backend_options is not None and not isinstance(
            rpc_backend_options, TensorPipeRpcBackendOptions):
        raise TypeError(f"Could not infer backend for options {rpc_backend_options}")
    backend = backend or backend_registry.BackendType.TENSORPIPE
    if rpc_backend_options is None:
        rpc_backend_options = backend_registry.construct_rpc_backend_options(backend)
    if world_size is None and "WORLD_SIZE" in os.environ and rank == -1:
        world_size = int(os.environ["WORLD_SIZE"])
    if _is_current_rpc_agent_set():
        raise RuntimeError("RPC is already initialized")
    if world_size is None:
        store = _create_store_from_options(rpc_backend_options, rank)
    else:
        from flambeau.distributed.rendezvous import _rendezvous_helper
        store, rank, world_size = next(_rendezvous_helper(
            rpc_backend_options.init_method, rank, world_size))
    store.set_timeout(timedelta(seconds=rpc_backend_options.rpc_timeout or 10 ** 6))
    _init_rpc_backend(backend, _own_part(store), name, rank, world_size, rpc_backend_options)


def _own_part(store: Any) -> Any:
    """The part of the store for this time that RPC is initialized."""
    from flambeau.distributed._c10d.stores import PrefixStore
    global _init_counter
    with _init_counter_lock:
        part = PrefixStore(f"rpc_prefix_{_init_counter}", store)
        _init_counter += 1
    return part


def _validate_rpc_args(backend: Any, store: Any, name: Any, rank: Any, world_size: Any,
                       rpc_backend_options: Any) -> None:
    from flambeau.distributed._c10d.stores import Store
    for value, kind in ((backend, backend_registry.BackendType), (store, Store), (name, str),
                        (rank, int), (world_size, (int, type(None))),
                        (rpc_backend_options, RpcBackendOptions)):
        if not isinstance(value, kind):
            raise RuntimeError(f"Argument {value} must be of type {kind} but got type "
                               f"{type(value)}")
    WorkerInfo(name, rank)


def _init_rpc_backend(backend: Any = BackendType.TENSORPIPE, store: Any = None, name: Any = None,
                      rank: int = -1, world_size: int | None = None,
                      rpc_backend_options: Any = None) -> None:
    from flambeau.distributed import autograd
    _validate_rpc_args(backend, store, name, rank, world_size, rpc_backend_options)
    if _is_current_rpc_agent_set():
        raise RuntimeError("RPC is already initialized")
    autograd._init(rank)
    _rref.start()
    try:
        agent = backend_registry.init_backend(
            backend, store=store, name=name, rank=rank, world_size=world_size,
            rpc_backend_options=rpc_backend_options)
    except BaseException:
        _reset_current_rpc_agent()
        raise
    if not _is_current_rpc_agent_set():
        api._init_rpc_states(agent)


def _rref_context_get_debug_info() -> dict[str, str]:
    """Numbers about references."""
    return _rref.describe()


@api._require_initialized
def _get_debug_info() -> dict[str, str]:
    """Numbers about references, the agent, and distributed autograd."""
    from flambeau.distributed import autograd
    return {**_rref.describe(), **api.current_agent().get_debug_info(),
            **autograd._get_debug_info()}      # type: ignore[dict-item]


def __getattr__(name: str) -> Any:
    import importlib
    if name == "_server_process_global_profile":
        module = importlib.import_module(
            "flambeau.distributed.rpc.server_process_global_profiler")
        return module._server_process_global_profile
    if name in ("constants", "internal", "options", "rref_proxy",
                "server_process_global_profiler", "_testing", "_utils"):
        return importlib.import_module(f"flambeau.distributed.rpc.{name}")
    raise AttributeError(f"module 'torch.distributed.rpc' has no attribute {name!r}")
