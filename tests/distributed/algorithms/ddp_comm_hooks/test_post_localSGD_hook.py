"""Means over all processes at first, later over those of a group."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post_local
from flambeau.nn.parallel import DistributedDataParallel
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def four():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    yield
    dist.destroy_process_group()


def factors(state, steps=4):
    """What is left of gradients of one in each step: nobody adds anything."""
    model, found = DistributedDataParallel(nn.Linear(1, 1, bias=False)), []
    model.register_comm_hook(state, post_local.post_localSGD_hook)
    for _ in range(steps):
        model.zero_grad()
        model(torch.ones(1, 1)).sum().backward()
        found.append(model.module.weight.grad.item())
    return found


def test_the_group_changes(four):
    state = post_local.PostLocalSGDState(None, dist.new_group([0, 1]), 2)
    assert factors(state) == [0.25, 0.25, 0.5, 0.5] and state.iter == 2


def test_gradients_may_stay(four):
    state = post_local.PostLocalSGDState(None, None, 1, post_local_gradient_allreduce=False)
    assert factors(state, 3) == [0.25, 1.0, 1.0]


def test_steps_are_counted_by_their_last_bucket(four):
    state = post_local.PostLocalSGDState(None, None, 2)

    class Bucket:
        def __init__(self, last):
            self.last = last

        def is_last(self):
            return self.last
    for last, count in ((False, 0), (True, 1), (False, 1), (True, 2)):
        state.maybe_increase_iter(Bucket(last))
        assert state.iter == count
