"""Optimizers that step in the backward pass."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms._optimizer_overlap import optimizer_overlap as overlap
from flambeau.nn.parallel import DistributedDataParallel


def test_a_step_follows_the_gradients(alone):
    layer = nn.Linear(2, 1, bias=False)
    before = layer.weight.detach().clone()
    model = DistributedDataParallel(layer)
    overlap._as_overlapped_optim(torch.optim.SGD, None, lr=0.5).register_ddp(model)
    model(torch.ones(1, 2)).sum().backward()
    assert torch.equal(layer.weight.detach(), before - 0.5)


def test_parameters_that_step(alone):
    layer = nn.Linear(2, 1)
    before = [p.detach().clone() for p in layer.parameters()]
    model = DistributedDataParallel(layer)
    overlap._as_overlapped_optim(torch.optim.SGD, [layer.bias], lr=0.5).register_ddp(model)
    model(torch.ones(1, 2)).sum().backward()
    assert torch.equal(layer.weight, before[0]) and torch.equal(layer.bias, before[1] - 0.5)


def test_what_is_not_overlapped():
    made = overlap._as_overlapped_optim(torch.optim.Adam, None)
    assert made.optim_cls is torch.optim.Adam
    with pytest.raises(NotImplementedError, match="does not support overlapped FSDP"):
        made.register_fsdp(None)
    with pytest.raises(ValueError, match="not have a functional"):
        overlap._as_overlapped_optim(torch.optim.LBFGS, None)


def test_forms_of_the_user():
    class Mine(torch.optim.SGD):
        pass

    @overlap.register_overlapped(Mine)
    class Overlapped:
        def __init__(self, optim_cls, params, **options):
            self.given = optim_cls, params, options

    class Derived(Mine):
        pass
    try:
        made = overlap._as_overlapped_optim(Derived, [1], lr=3)
        assert type(made) is Overlapped and made.given == (Derived, [1], {"lr": 3})
    finally:
        del overlap._registered_overlapped_optims[Mine]
