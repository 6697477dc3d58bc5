"""RPC by the names of PyTorch's extension."""
from __future__ import annotations

from flambeau.distributed.rpc import _rref_context_get_debug_info
from flambeau.distributed.rpc.agent import RpcAgent, TensorPipeAgent
from flambeau.distributed.rpc.api import _set_rpc_timeout, get_rpc_timeout
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
from flambeau.distributed.rpc.options import RpcBackendOptions, _TensorPipeRpcBackendOptionsBase
from flambeau.distributed.rpc.rref import PyRRef

__all__ = ["_DEFAULT_INIT_METHOD", "_DEFAULT_NUM_WORKER_THREADS", "_DEFAULT_RPC_TIMEOUT_SEC",
           "_UNSET_RPC_TIMEOUT", "PyRRef", "RpcAgent", "RpcBackendOptions", "TensorPipeAgent",
           "WorkerInfo", "_TensorPipeRpcBackendOptionsBase", "_get_current_rpc_agent",
           "_is_current_rpc_agent_set", "_reset_current_rpc_agent",
           "_rref_context_get_debug_info", "_set_and_start_rpc_agent", "_set_rpc_timeout",
           "get_rpc_timeout"]
