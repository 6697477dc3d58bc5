"""Means of gradients, of which each process has the whole or a part."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.algorithms._comm_hooks import default_hooks as hooks
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def imagined():
    def make(size):
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=size)
        return dist.group.WORLD
    yield make
    dist.destroy_process_group()


@pytest.mark.parametrize(("size", "before"), [(1, 1), (2, 2), (3, 2), (4, 2), (6, 4), (8, 4),
                                              (16, 4), (64, 8)])
def test_factors_are_about_the_root_of_the_size(imagined, size, before):
    state = hooks.DefaultState(imagined(size))
    assert state.world_size == size and state.gradient_predivide_factor == before
    assert state.gradient_predivide_factor * state.gradient_postdivide_factor == size


def test_gradients_are_divided_twice(imagined):
    """Nothing is added up here: what is left is one part in eight."""
    state = hooks.DefaultState(imagined(8))
    grad = torch.full((8,), 8.0)
    hooks.allreduce_hook(state, grad)
    assert grad.tolist() == [1.0] * 8


def test_small_types(alone):
    state = hooks.LowPrecisionState(dist.group.WORLD, torch.float64)
    for hook, dtype in ((hooks.fp16_compress_hook, torch.float16),
                        (hooks.bf16_compress_hook, torch.bfloat16)):
        grad, part = torch.full((2,), 1 / 3), torch.zeros(2)
        hook(state, grad)
        assert grad.dtype is torch.float64
        assert grad.tolist() == [torch.tensor(1 / 3).to(dtype).item()] * 2
        hook(state, torch.full((2,), 1 / 3), part)
        assert part.dtype is torch.float64 and part.tolist() == grad.tolist()


def test_a_group_is_needed():
    with pytest.raises(ValueError, match="Expected to pass in an explicit ProcessGroup to"):
        hooks.DefaultState(None)
