"""The agent of a worker: here it calls itself."""
from __future__ import annotations

import threading
import time

import pytest

import flambeau as torch
from flambeau.distributed import rpc
from flambeau.distributed.elastic.utils.distributed import get_free_port


@pytest.fixture
def agent():
    rpc.init_rpc("w0", rank=0, world_size=1, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
        init_method=f"tcp://localhost:{get_free_port()}", num_worker_threads=4))
    yield rpc._get_current_rpc_agent()
    if rpc._is_current_rpc_agent_set():
        rpc.shutdown()


def answer(x):
    return x


def test_workers(agent):
    me = agent.get_worker_info()
    assert (me.name, me.id) == ("w0", 0) and agent.get_worker_infos() == [me]
    assert agent.get_worker_info("w0") == agent.get_worker_info(0) == me
    for wanted, kind in (("w1", "name w1"), (1, "id 1")):
        with pytest.raises(RuntimeError, match=f"could not find destination {kind}"):
            agent.get_worker_info(wanted)


def test_names():
    info = rpc.WorkerInfo("a-b_c:9", 3)
    assert repr(info) == "WorkerInfo(id=3, name=a-b_c:9)" and (info.name, info.id) == ("a-b_c:9", 3)
    for name in ("", "a b", "x" * 128, "é", "a/b"):
        with pytest.raises(RuntimeError, match="Worker name must match"):
            rpc.WorkerInfo(name, 0)
    assert rpc.WorkerInfo("x" * 127, 0).name == "x" * 127


def test_values_go_and_come_back_as_copies(agent):
    for x in (torch.arange(6.0).view(2, 3).t(), torch.tensor(3), torch.zeros(0, 2),
              torch.tensor([1j]), torch.tensor([True])):
        back = rpc.rpc_sync("w0", answer, args=(x,))
        assert back.equal(x) and back.dtype is x.dtype
        assert x.numel() == 0 or back.data_ptr() != x.data_ptr()
    leaf = torch.ones(1, requires_grad=True)
    assert rpc.rpc_sync("w0", answer, args=({"a": [leaf]},))["a"][0].tolist() == [1]


def test_a_call_that_takes_too_long(agent):
    gate = threading.Event()
    waiting.gate = gate
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match=r"RPC ran for more than set timeout \(50 ms\)"):
        rpc.rpc_sync("w0", waiting, timeout=0.05)
    assert time.monotonic() - begun < 5
    gate.set()


def waiting():
    waiting.gate.wait(10)


def test_numbers_about_the_agent(agent):
    assert agent.get_metrics()["agent.thread_pool_size"] == "4"
    assert {"agent.client_active_calls", "agent.server_active_calls",
            "agent.num_idle_threads"} <= set(agent.get_metrics())
    assert rpc._get_debug_info()["agent.thread_pool_size"] == "4"


def test_after_the_end(agent):
    rpc.shutdown()
    assert not rpc._is_current_rpc_agent_set()
    with pytest.raises(RuntimeError, match="Current RPC agent is not set"):
        rpc._get_current_rpc_agent()
