"""Modules in another process; words from PyTorch."""
from __future__ import annotations

import pickle

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed import rpc
from flambeau.distributed.elastic.utils.distributed import get_free_port
from flambeau.distributed.nn import RemoteModule
from flambeau.distributed.nn.api.remote_module import _RemoteModule


def start(rank, port, size=2):
    rpc._init_counter = 0           # these workers have not all been in all groups before
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=size,
                 rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
                     init_method=f"tcp://localhost:{port}"))


@torch.jit.interface
class OfOne:
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        pass


def run(module, x):
    return module(x)


def check(rank, port):
    start(rank, port)
    if rank == 0:
        module, x = RemoteModule("w1/cpu", nn.Linear, args=(2, 1)), torch.ones(1, 2)
        weight, bias = (reference.to_here() for reference in module.remote_parameters())
        expected = torch.nn.functional.linear(x, weight, bias)
        assert module(x).equal(expected) and module.forward_async(x).wait().equal(expected)
        assert (module.on, module.device) == ("w1", "cpu")
        assert rpc.rpc_sync("w1", run, args=(module, x)).equal(expected)
        again = RemoteModule.init_from_module_rref("w1/cpu", module.get_module_rref())
        assert again(x).equal(expected)
        typed = _RemoteModule("w1/cpu", nn.ReLU, _module_interface_cls=OfOne)
        assert typed.is_scriptable and typed(input=-x).tolist() == [[0, 0]]
        assert torch.jit.script(typed).forward_async(-x).wait().tolist() == [[0, 0]]
        with pytest.raises(TypeError, match="too many positional arguments"):
            typed(x, x)
        assert RemoteModule("rank:1/cpu", nn.ReLU)(-x).tolist() == [[0, 0]]
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            RemoteModule("w1/cpu", nn.Linear, args=(2,))
        with pytest.raises(ValueError, match=r"returns an instance of <class nn\.Module>"):
            RemoteModule("w1/cpu", dict)
    rpc.shutdown()


def test_remote_modules(processes):
    processes(check, get_free_port(), group=False)


def test_what_they_do_not_have():
    start(0, get_free_port(), 1)
    try:
        module = RemoteModule("w0/cpu", nn.Linear, args=(2, 1))
        for name in ("state_dict", "cuda", "half", "modules", "zero_grad"):
            with pytest.raises(ValueError,
                               match=f"Method ``{name}`` not supported for RemoteModule"):
                getattr(module, name)()
        with pytest.raises(ValueError, match="Please use ``remote_parameters`` instead"):
            module.parameters()
        with pytest.raises(RuntimeError, match="RemoteModule can only be pickled when using RPC"):
            pickle.dumps(module)
        assert module.eval().training is False
    finally:
        rpc.shutdown()
    with pytest.raises(AssertionError, match="RemoteModule only works in RPC"):
        RemoteModule("w0/cpu", nn.Linear, args=(2, 1))
