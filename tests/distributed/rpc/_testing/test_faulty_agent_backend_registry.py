"""The transport that loses messages."""
from __future__ import annotations

import pytest

from flambeau.distributed import HashStore, rpc
from flambeau.distributed.rpc import _testing, backend_registry
from flambeau.distributed.rpc._testing import faulty_agent_backend_registry


def test_options():
    assert _testing.is_available()
    backend = rpc.backend_registry.BackendType["FAULTY_TENSORPIPE"]
    options = backend_registry.construct_rpc_backend_options(
        backend, rpc_timeout=5, init_method="x", num_worker_threads=2, messages_to_fail=["A"],
        messages_to_delay={"B": 1.5}, num_fail_sends=3)
    assert (options.messages_to_fail, options.messages_to_delay, options.num_fail_sends) == (
        ["A"], {"B": 1.5}, 3)
    assert (options.rpc_timeout, options.num_worker_threads) == (5, 2)


def test_what_is_refused():
    start = faulty_agent_backend_registry._faulty_tensorpipe_init_backend_handler
    with pytest.raises(TypeError, match="`store` must be a c10d::Store"):
        start(3, "a", 0, 1, None)
    with pytest.raises(TypeError, match="`rpc_backend_options` must be a `Faulty"):
        start(HashStore(), "a", 0, 1, rpc.TensorPipeRpcBackendOptions())
