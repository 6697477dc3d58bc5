"""Agents that lose messages, for tests."""
from __future__ import annotations

from flambeau.distributed.rpc._testing import faulty_agent_backend_registry
from flambeau.distributed.rpc._testing.faulty import (
    FaultyTensorPipeAgent,
    FaultyTensorPipeRpcBackendOptions,
)


def is_available() -> bool:
    """True: there is an agent that loses messages on purpose."""
    return True
