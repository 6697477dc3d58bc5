"""A small network whose gradients are shared, and a hook that says what it was given."""
from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.nn.parallel import DistributedDataParallel


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2))


def flat(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def gradients(rank, hook=None, state=None, steps=1, **options):
    model = DistributedDataParallel(network(), **options)
    if hook is not None:
        model.register_comm_hook(state, hook)
    x = torch.arange(24.0).view(4, 6) / 10 + rank
    for _ in range(steps):
        model.zero_grad()
        model(x).pow(2).sum().backward()
    return flat(model)
