"""Schedules of one stage a rank: losses and gradients are those of one process."""
from __future__ import annotations

import pytest
from stage_cases import CPU, linears, loss_fn
from step_cases import SINGLE, batch, run_steps

import flambeau
from flambeau import nn
from flambeau.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    _ScheduleForwardOnly,
)


@pytest.mark.parametrize("kind", SINGLE)
@pytest.mark.parametrize("size, microbatches", [(2, 4), (3, 6)])
def test_one_stage_a_rank(processes, kind, size, microbatches):
    processes(run_steps, kind, microbatches, size, 1, 2, {}, size=size)


@pytest.mark.parametrize("kind", SINGLE)
def test_one_rank(alone, kind):
    flambeau.manual_seed(0)
    model = nn.Linear(4, 4)
    x, _, target = batch()
    losses: list = []
    output = kind(PipelineStage(model, 0, 1, CPU), 3, loss_fn=loss_fn).step(
        x, target=target, losses=losses)
    flambeau.testing.assert_close(output, model(x))
    grads = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    loss_fn(model(x), target).backward()
    flambeau.testing.assert_close(grads, [p.grad for p in model.parameters()])


def test_too_few_microbatches(alone):
    stage = PipelineStage(linears(1)[0], 0, 2, CPU)
    with pytest.raises(ValueError, match=r"\(1\) must be greater than or equal to the\s+number"):
        Schedule1F1B(stage, 1)
    assert ScheduleGPipe(stage, 1)._n_microbatches == 1


def test_orders_of_all_ranks(alone):
    stage = PipelineStage(linears(1)[0], 0, 2, CPU)
    found = ScheduleGPipe(stage, 2).pipeline_order
    assert [str(action) for action in found[0] if action] == [
        "0F0", "0F1", "0B0", "0B1", "0REDUCE_GRAD"]
    assert _ScheduleForwardOnly(stage, 2).pipeline_order is None
