"""The mean of the gradients, in their own type or in one of half the size."""
from __future__ import annotations

import pytest
from hook_cases import gradients

import flambeau as torch
from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks

SMALL = {"fp16": torch.float16, "bf16": torch.bfloat16}


def test_without_a_change(alone):
    assert torch.equal(gradients(0, default_hooks.allreduce_hook), gradients(0))


@pytest.mark.parametrize("name", SMALL)
def test_gradients_travel_in_a_small_type(alone, name):
    rounded = gradients(0).to(SMALL[name]).float()
    hook = getattr(default_hooks, f"{name}_compress_hook")
    assert torch.equal(gradients(0, hook), rounded)
    wrapped = getattr(default_hooks, f"{name}_compress_wrapper")(default_hooks.allreduce_hook)
    assert torch.equal(gradients(0, wrapped), rounded)


@pytest.mark.parametrize("name", SMALL)
def test_a_wrapped_hook_gets_the_small_type(alone, name):
    seen = []

    def hook(state, bucket):
        seen.append((state, bucket.buffer().dtype))
        return default_hooks.allreduce_hook(None, bucket)
    wrapped = getattr(default_hooks, f"{name}_compress_wrapper")(hook)
    assert gradients(0, wrapped, "state").dtype is torch.float32
    assert seen == [("state", SMALL[name])]
