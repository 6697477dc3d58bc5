"""Processes with different numbers of inputs; sums of parameters are those of PyTorch 2.13."""
from __future__ import annotations

from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms.join import Join, Joinable
from flambeau.distributed.algorithms.model_averaging import averagers, utils
from flambeau.distributed.algorithms.model_averaging.hierarchical_model_averager import (
    HierarchicalModelAverager,
)
from flambeau.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from flambeau.nn.parallel import DistributedDataParallel as DDP


def network(norm=False):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3) if norm else nn.Tanh(),
                         nn.Linear(3, 1))


def inputs(rank):
    return torch.arange(8.0).view(2, 4) / 8 + rank


def train(model, optimizer, rank, steps):
    for i in range(steps):
        optimizer.zero_grad()
        model(inputs(rank) + i).pow(2).sum().mul(0.01).backward()
        optimizer.step()


def sums(model):
    return torch.stack([p.detach().sum() for p in model.parameters()])


def uneven(rank):
    found = {}
    for divide in (True, False):
        for norm in (True, False):
            model = DDP(network(norm))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with model.join(divide_by_initial_world_size=divide):
                train(model, optimizer, rank, 2 + 2 * rank)
            found[divide, norm] = sums(model)
            if norm:
                assert model.module[1].num_batches_tracked.item() == 4
    torch.testing.assert_close(found[True, False], torch.tensor(JOINED), atol=1e-4, rtol=0)
    assert not torch.allclose(found[True, False], found[False, False], atol=1e-5)
    model = DDP(network(), find_unused_parameters=True)
    with model.join():
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), rank, 2 + 2 * rank)
    torch.testing.assert_close(sums(model), found[True, False])
    zero = DDP(network())
    optimizer = ZeroRedundancyOptimizer(zero.parameters(), torch.optim.SGD, lr=0.1)
    with Join([zero, optimizer]):
        train(zero, optimizer, rank, 2 + 2 * rank)
    torch.testing.assert_close(sums(zero), found[True, False])
    early = DDP(network())
    with pytest.raises(RuntimeError, match="exhausted"), \
            Join([early], throw_on_early_termination=True):
        train(early, torch.optim.SGD(early.parameters(), lr=0.1), rank, 2 + 2 * rank)


def averages(rank):
    model = network()
    averager = averagers.PeriodicModelAverager(period=2, warmup_steps=1)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), averager)
    train(model, optimizer, rank, 4)
    assert averager.step == optimizer.state_dict()["step"] == 4
    own = sums(model)
    averagers.PeriodicModelAverager(period=2).average_parameters(model.parameters())
    torch.testing.assert_close(sums(model), own)        # they met in the last step
    tree = HierarchicalModelAverager(OrderedDict([(2, 1), (4, 2)]))
    weight = nn.Parameter(torch.full((2,), float(rank)))
    weight.grad = torch.zeros(2)
    seen = []
    for _ in range(5):
        tree.average_parameters([weight])
        seen.append(weight[0].item())
        weight.data += rank
    assert seen == [[0.5, 0.5, 0.5, 0.5, 2.5], [0.5, 1.5, 2.5, 3.5, 2.5]][rank]


JOINED = [-0.33021, -1.01244, 0.59024, -0.38554]


def everything(rank):
    uneven(rank)
    averages(rank)


def test_two_processes(processes):
    processes(everything)


def test_what_is_refused(alone):
    with pytest.raises(ValueError, match="requires at least one joinable"):
        Join([])
    with pytest.raises(ValueError, match="``period`` must be a positive value"):
        averagers.PeriodicModelAverager(0)
    with pytest.raises(ValueError, match="``warmup_steps`` must be a non-negative"):
        averagers.PeriodicModelAverager(2, -1)
    with pytest.raises(ValueError, match="must not be empty"):
        HierarchicalModelAverager()
    with pytest.raises(NotImplementedError, match="Parameter input of type <class 'int'>"):
        utils.get_params_to_average([3])

    class Unready(Joinable):
        join_device = join_process_group = None

        def __init__(self):
            pass

        def join_hook(self, **kwargs):
            return None
    with pytest.raises(AssertionError, match="calls the ``Joinable`` constructor"):
        Join.notify_join_context(Unready())
