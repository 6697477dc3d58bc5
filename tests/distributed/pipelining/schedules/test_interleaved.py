"""Orders of several stages a rank: losses and gradients are those of one process."""
from __future__ import annotations

import pytest
from stage_cases import grads, loss_fn, reference, stages, x
from step_cases import LOOPED, V, run_steps

import flambeau
from flambeau.distributed.pipelining import (
    ScheduleDualPipeV,
    ScheduleInterleaved1F1B,
    ScheduleZBVZeroBubble,
)


@pytest.mark.parametrize("kind", LOOPED + V)
def test_two_stages_a_rank(processes, kind):
    processes(run_steps, kind, 6, 2, 2, 2, {}, size=2)


@pytest.mark.parametrize("kind", LOOPED + V)
def test_receives_are_deferred(processes, kind):
    processes(run_steps, kind, 4, 2, 2, 1, {"defer_pp_recv": True}, size=2)


@pytest.mark.parametrize("kind", [ScheduleInterleaved1F1B, ScheduleZBVZeroBubble])
def test_several_stages_on_three_ranks(processes, kind):
    processes(run_steps, kind, 6, 3, 2, 1, {}, size=3)


@pytest.mark.parametrize("kind", LOOPED + V)
def test_one_rank(alone, kind):
    """Without others, too, and whatever the order is."""
    mine = stages()
    output = kind(mine, 4, loss_fn=loss_fn).step(x, target=x)
    wanted_output, wanted = reference()
    flambeau.testing.assert_close(output, wanted_output)
    flambeau.testing.assert_close(grads(mine), wanted)


def test_counts_that_do_not_fit(alone):
    for kind in V:
        with pytest.raises(ValueError, match="ZBV requires exactly 2 stages per rank, but got 1"):
            kind(stages(1), 2)
    with pytest.raises(ValueError, match="at least as many microbatches as stages"):
        ScheduleDualPipeV(stages(), 1)
