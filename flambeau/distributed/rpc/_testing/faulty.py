"""An agent that loses or delays messages on purpose, to try what programs make of it."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from flambeau.distributed.autograd.engine import release
from flambeau.distributed.rpc import rref
from flambeau.distributed.rpc.agent import TensorPipeAgent
from flambeau.distributed.rpc.constants import UNSET_RPC_TIMEOUT
from flambeau.distributed.rpc.current import WorkerInfo
from flambeau.distributed.rpc.options import _TensorPipeRpcBackendOptionsBase
from flambeau.futures import Future

# Messages that are sent again if they fail, up to five times, at these intervals in seconds.
_RETRIED = ("RREF_FORK_REQUEST", "RREF_CHILD_ACCEPT", "RREF_USER_DELETE",
            "CLEANUP_AUTOGRAD_CONTEXT_REQ")
_PAUSES = (0.01, 0.02, 0.04, 0.08, 0.16)


class FaultyTensorPipeRpcBackendOptions(_TensorPipeRpcBackendOptionsBase):
    """Options of the agent: the kinds of messages of which the first `num_fail_sends` attempts
    fail, and the seconds by which kinds are late."""

    def __init__(self, num_worker_threads: int, rpc_timeout: float, init_method: str,
                 messages_to_fail: list[str], messages_to_delay: dict[str, float],
                 num_fail_sends: int):
        super().__init__(num_worker_threads, rpc_timeout=rpc_timeout, init_method=init_method)
        self.messages_to_fail, self.messages_to_delay = messages_to_fail, messages_to_delay
        self.num_fail_sends = num_fail_sends


class FaultyTensorPipeAgent(TensorPipeAgent):
    """An agent whose messages get lost, or are late."""

    calls_itself = True

    def __init__(self, store: Any, name: str, rank: int, world_size: int | None, opts: Any,
                 reverse_device_maps: Any = None, devices: Any = None):
        self._now = threading.local()           # what is being sent
        super().__init__(store, name, rank, world_size, opts, reverse_device_maps, devices)

    def call(self, to: WorkerInfo, function: Callable[..., Any], args: tuple[Any, ...] = (),
             kwargs: dict[str, Any] | None = None, timeout: float = UNSET_RPC_TIMEOUT,
             recorded: bool = True) -> Future[Any]:
        """A future of what a function gives in a worker, if the message comes to it."""
        self._now.kinds = kinds_of(function, args)
        return super().call(to, function, args, kwargs, timeout, recorded)

    def _send(self, rank: int, head: Any, tensors: list[Any]) -> None:
        if head[0] != "call":
            super()._send(rank, head, tensors)
            return
        options, kinds, late = self._options, self._now.kinds, 0.0
        failing = next((kind for kind in kinds if kind in options.messages_to_fail), None)
        if failing is not None and options.num_fail_sends:
            if failing not in _RETRIED or options.num_fail_sends > len(_PAUSES):
                self._answer(head[1], RuntimeError(
                    f"RPCErr:2:Send attempt {options.num_fail_sends} failed intentionally for "
                    f"{failing}"))
                return
            late = sum(_PAUSES[:options.num_fail_sends])
        late += max((options.messages_to_delay.get(kind, 0.0) for kind in kinds), default=0.0)
        if not late:
            super()._send(rank, head, tensors)
            return
        timer = threading.Timer(late, super()._send, (rank, head, tensors))
        timer.daemon = True
        timer.start()


def kinds_of(function: Any, args: tuple[Any, ...]) -> tuple[str, ...]:
    """The kinds of a message that calls a function: what fetches a value belongs to two."""
    found = {rref._add_fork: "RREF_FORK_REQUEST", rref._accept_child: "RREF_CHILD_ACCEPT",
             rref._delete_fork: "RREF_USER_DELETE", release: "CLEANUP_AUTOGRAD_CONTEXT_REQ"}
    if function is rref._fetch:
        return "PYTHON_RREF_FETCH_CALL", "SCRIPT_RREF_FETCH_CALL"
    if function is rref._create:
        return (f"{_language(args[2])}_REMOTE_CALL",)
    return (found.get(function) or f"{_language(function)}_CALL",)


def _language(function: Any) -> str:
    """Ops, and compiled functions, are of a kind of their own."""
    from flambeau.jit import ScriptFunction
    from flambeau.jit._builtins import _find_builtin
    own = isinstance(function, ScriptFunction) or _find_builtin(function) is not None
    return "SCRIPT" if own else "PYTHON"
