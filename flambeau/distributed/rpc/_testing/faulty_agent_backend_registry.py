"""The transport FAULTY_TENSORPIPE."""
from __future__ import annotations

from typing import Any

from flambeau.distributed.rpc import api, backend_registry
from flambeau.distributed.rpc._testing.faulty import (
    FaultyTensorPipeAgent,
    FaultyTensorPipeRpcBackendOptions,
)


def _faulty_tensorpipe_construct_rpc_backend_options_handler(
        rpc_timeout: float, init_method: str, num_worker_threads: int,
        messages_to_fail: list[str], messages_to_delay: dict[str, float], num_fail_sends: int,
        **kwargs: Any) -> FaultyTensorPipeRpcBackendOptions:
    return FaultyTensorPipeRpcBackendOptions(
        num_worker_threads, rpc_timeout, init_method, messages_to_fail, messages_to_delay,
        num_fail_sends)


def _faulty_tensorpipe_init_backend_handler(store: Any, name: str, rank: int,
                                            world_size: int | None, rpc_backend_options: Any
                                            ) -> FaultyTensorPipeAgent:
    backend_registry._check_types(store, rpc_backend_options, FaultyTensorPipeRpcBackendOptions)
    agent = FaultyTensorPipeAgent(store, name, rank, world_size, rpc_backend_options)
    api._init_rpc_states(agent)
    return agent


backend_registry.register_backend(
    "FAULTY_TENSORPIPE", _faulty_tensorpipe_construct_rpc_backend_options_handler,
    _faulty_tensorpipe_init_backend_handler)
