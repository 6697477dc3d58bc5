"""How RPC is initialized, and what is wrong with it."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist
from flambeau.distributed import rpc
from flambeau.distributed.elastic.utils.distributed import get_free_port


def options():
    return rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://localhost:{get_free_port()}")


def test_once_and_again():
    for _ in range(2):
        rpc.init_rpc("w0", rank=0, world_size=1, rpc_backend_options=options())
        try:
            assert rpc._is_current_rpc_agent_set() and rpc.get_worker_info().name == "w0"
            with pytest.raises(RuntimeError, match="RPC is already initialized"):
                rpc.init_rpc("w0", rank=0, world_size=1, rpc_backend_options=options())
        finally:
            rpc.shutdown()
        assert not rpc._is_current_rpc_agent_set()


@pytest.mark.parametrize(("given", "words"), [
    ({"backend": "x"}, "Argument backend must be a member of BackendType"),
    ({"rpc_backend_options": 3}, "must be an instance of RpcBackendOptions"),
    ({"rpc_backend_options": rpc.RpcBackendOptions()}, "Could not infer backend for options")])
def test_arguments_of_other_types(given, words):
    with pytest.raises(TypeError, match=words):
        rpc.init_rpc("w0", rank=0, world_size=1, **given)
    assert not rpc._is_current_rpc_agent_set()


def test_a_failure_leaves_nothing():
    with pytest.raises(RuntimeError, match="Worker name must match"):
        rpc.init_rpc("a b", rank=0, world_size=1, rpc_backend_options=options())
    assert not rpc._is_current_rpc_agent_set()


@pytest.mark.parametrize("changed", [{"name": 3}, {"rank": "0"}, {"store": None},
                                     {"rpc_backend_options": None}, {"backend": None}])
def test_each_argument_has_its_type(changed):
    given = {"backend": rpc.BackendType.TENSORPIPE, "store": dist.HashStore(), "name": "w0",
             "rank": 0, "world_size": 1, "rpc_backend_options": options(), **changed}
    with pytest.raises(RuntimeError, match=r"must be of type .* but got type"):
        rpc._validate_rpc_args(**given)


def test_names():
    assert rpc.is_available() and rpc._is_tensorpipe_available
    assert rpc.constants.DEFAULT_RPC_TIMEOUT_SEC == 60
    assert not hasattr(rpc, "of_nobody")
    with pytest.raises(RuntimeError, match=r"RPC has not been initialized\. Call"):
        rpc._get_debug_info()
