"""The package's names, some of which come late."""
from __future__ import annotations

import flambeau as torch
from flambeau.distributed import nn


def test_collectives_have_gradients(alone):
    x = torch.ones(3, requires_grad=True)
    for call in (nn.all_reduce, lambda x: nn.broadcast(x, 0), lambda x: nn.all_gather(x)[0],
                 lambda x: nn.reduce(x, 0), lambda x: nn.gather(x)[0]):
        found, = torch.autograd.grad((call(x) * 2).sum(), x)
        assert found.tolist() == [2, 2, 2]


def test_names():
    from flambeau.distributed.nn.api.remote_module import RemoteModule
    assert nn.RemoteModule is RemoteModule and nn.api.remote_module.RemoteModule is RemoteModule
    assert nn.functional.all_reduce is nn.all_reduce
    assert not hasattr(nn, "of_nobody")
