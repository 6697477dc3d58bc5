"""Options of the transport; words from PyTorch."""
from __future__ import annotations

import pytest

from flambeau.distributed import rpc


def test_defaults():
    options = rpc.TensorPipeRpcBackendOptions()
    assert (options.rpc_timeout, options.init_method, options.num_worker_threads) == (
        60, "env://", 16)
    assert options.device_maps == {} and options.devices == []


def test_what_can_be_set():
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=3, rpc_timeout=5)
    options.rpc_timeout = 7
    assert options.rpc_timeout == 7.0 and options.num_worker_threads == 3
    options.init_method = "tcp://x:1"
    assert options.init_method == "tcp://x:1"


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"num_worker_threads": 0}, RuntimeError, "num_worker_threads must be positive"),
    ({"rpc_timeout": -1}, RuntimeError, "RPC Timeout must be non-negative"),
    ({"devices": ["cpu"]}, ValueError, "`set_devices` expect a list of CUDA devices"),
    ({"device_maps": {"w1": {0: 1}}}, RuntimeError, "Cannot access accelerator device")])
def test_what_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        rpc.TensorPipeRpcBackendOptions(**options)


def test_accelerators():
    options = rpc.TensorPipeRpcBackendOptions()
    options.set_device_map("w1", {"cuda:0": "cuda:1"})
    options.set_device_map("w1", {"cuda:2": "cuda:3"})
    assert {str(a): str(b) for a, b in options.device_maps["w1"].items()} == {
        "cuda:0": "cuda:1", "cuda:2": "cuda:3"}
    with pytest.raises(ValueError, match="1-to-1"):
        options.set_device_map("w2", {"cuda:0": "cuda:1", "cuda:2": "cuda:1"})
    with pytest.raises(ValueError, match="`set_devices` expect a list of CUDA devices"):
        options.set_devices(["cpu"])
