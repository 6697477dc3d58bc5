"""What all schedules share."""
from __future__ import annotations

import pytest
from stage_cases import CPU, grads, linears, loss_fn, reference, stages, x

import flambeau
from flambeau import nn
from flambeau.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    _ScheduleForwardOnly,
)
from flambeau.distributed.pipelining._utils import PipeliningMetadataError


@pytest.mark.parametrize("kind", [ScheduleGPipe, Schedule1F1B])
def test_bad_steps(alone, kind):
    module = nn.Linear(3, 3)
    schedule = kind(PipelineStage(module, 0, 1, CPU), 2, loss_fn=loss_fn)
    with pytest.raises(PipeliningMetadataError, match="loss_fn and target required"):
        schedule.step(x)
    with pytest.raises(ValueError, match="Expecting 2 arg_mbs but got 1"):
        schedule._step_microbatches([(x,)], [{}], [x])
    with pytest.raises(TypeError, match="losses must be a list but got a <class 'int'>"):
        schedule._step_microbatches([(x,)] * 2, [{}] * 2, [x] * 2, 3)
    with pytest.raises(AssertionError, match="Tensor size 1 is smaller than num_chunks"):
        schedule.step(x[:1], target=x[:1])
    with flambeau.no_grad(), pytest.raises(RuntimeError, match=r"Please call eval\(\) instead"):
        schedule.step(x, target=x)
    schedule.step(x, target=x)
    with pytest.raises(RuntimeError, match=r"(?s)\[Stage 0\] failed to run forward:.*size="
                                           r"|\[Stage 0\] failed to run forward"):
        schedule.step(x[:, :2], target=x)
    with pytest.raises(RuntimeError, match="Forward-only schedule does not support loss"):
        _ScheduleForwardOnly(PipelineStage(module, 0, 1, CPU), 2).step(x, target=x)
    assert _ScheduleForwardOnly(PipelineStage(module, 0, 1, CPU), 2).step(x).shape == x.shape


def test_an_evaluation_between_steps(alone):
    mine = stages()
    schedule = ScheduleInterleavedZeroBubble(mine, 2, loss_fn=loss_fn)
    output, wanted = reference()
    losses: list = []
    flambeau.testing.assert_close(schedule.eval(x, target=x, losses=losses), output)
    assert len(losses) == 2 and grads(mine) == [None] * 4
    flambeau.testing.assert_close(schedule.eval(x), output)
    found = schedule.step(x, target=x)
    assert not found.requires_grad                      # its graph is not kept
    flambeau.testing.assert_close(grads(mine), wanted)
    assert schedule.step(x, target=x, return_outputs=False) is None


def test_gradients_that_are_not_scaled(alone):
    mine = stages()
    ScheduleInterleaved1F1B(mine, 2, loss_fn=loss_fn, scale_grads=False).step(x, target=x)
    flambeau.testing.assert_close(grads(mine), [2 * grad for grad in reference()[1]])


def test_arguments_of_the_loss(alone):
    module = linears(1)[0]
    losses: list = []
    ScheduleGPipe(PipelineStage(module, 0, 1, CPU), 2, loss_fn=loss_fn).step(
        x, target=x, losses=losses, loss_kwargs={"reduction": "sum"})
    flambeau.testing.assert_close(losses[0], loss_fn(module(x[:2]), x[:2], reduction="sum"))


@pytest.fixture
def schedule(alone):
    return ScheduleGPipe(PipelineStage(linears(1)[0], 0, 1, CPU), 3, loss_fn=loss_fn)


def test_batches_are_cut(schedule):
    args, kwargs = schedule._split_inputs((flambeau.arange(7).view(7, 1),), {"k": flambeau.ones(6)})
    assert [len(a[0]) for a in args] == [3, 2, 2] and [len(k["k"]) for k in kwargs] == [2, 2, 2]
    assert schedule._split_inputs((), {}) == ([(), (), ()], [{}, {}, {}])
    assert schedule._split_target(None) is None
    assert [t.tolist() for t in schedule._split_target(flambeau.arange(4))] == [[0, 1], [2], [3]]
    assert schedule._merge_outputs([flambeau.ones(2, 1), flambeau.zeros(1, 1)]).shape == (3, 1)


def test_losses_that_are_not_there(schedule):
    with pytest.raises(RuntimeError, match="Loss for microbatch 0 is not available"):
        schedule._maybe_get_loss(schedule._stage, 0)
    with pytest.raises(RuntimeError, match="Expecting 3 losses but got 0"):
        schedule._update_losses(schedule._stage, [])
    for name, values, error in (("arg_mbs", (1,), TypeError), ("kwarg_mbs", [1], ValueError),
                                ("target_mbs", [1] * 4, ValueError)):
        with pytest.raises(error, match=name):
            schedule._check_inputs(**{name: values})
    assert schedule._check_inputs() == ([(), (), ()], [{}, {}, {}])
