"""Optimizers at the owners of parameters, which here are all this process."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed import autograd, rpc
from flambeau.distributed.elastic.utils.distributed import get_free_port
from flambeau.distributed.optim import DistributedOptimizer


@pytest.fixture(autouse=True)
def alone():
    rpc.init_rpc("w0", rank=0, world_size=1, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
        init_method=f"tcp://localhost:{get_free_port()}"))
    yield
    rpc.shutdown()


def squares(references):
    return sum((reference.to_here() ** 2).sum() for reference in references)


@pytest.mark.parametrize(("cls", "options", "functional"), [
    (torch.optim.SGD, {"lr": 0.1}, True), (torch.optim.Adam, {"lr": 0.1}, True),
    (torch.optim.ASGD, {"lr": 0.1}, False)])
def test_steps_are_those_of_the_optimizer(cls, options, functional, caplog):
    values = [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]
    params = [torch.nn.Parameter(value.clone()) for value in values]
    references = [rpc.RRef(param) for param in params]
    optimizer = DistributedOptimizer(cls, references, **options)
    assert optimizer.is_functional_optim is functional
    assert ("without TorchScript support" in caplog.text) is not functional
    plain = [torch.nn.Parameter(value.clone()) for value in values]
    wanted = cls(plain, **options)
    for _ in range(3):
        with autograd.context() as number:
            autograd.backward(number, [squares(references)])
            optimizer.step(number)
        wanted.zero_grad()
        sum((p ** 2).sum() for p in plain).backward()
        wanted.step()
    for param, other in zip(params, plain):
        torch.testing.assert_close(param, other)


def test_contexts_that_are_none():
    optimizer = DistributedOptimizer(torch.optim.SGD, [rpc.RRef(torch.nn.Parameter(torch.ones(1)))],
                                     lr=0.1)
    with pytest.raises(RuntimeError, match="Could not find autograd context with id: 77"):
        optimizer.step(77)


def test_what_an_optimizer_refuses_is_raised():
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        DistributedOptimizer(torch.optim.SGD, [rpc.RRef(torch.nn.Parameter(torch.ones(1)))], lr=-1)
