"""Stages that the user has cut: what they find out, and leave as it was."""
from __future__ import annotations

import pytest
from stage_cases import CPU, grads, loss_fn, x

import flambeau
from flambeau import nn
from flambeau.distributed.pipelining import (
    PipelineStage,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)
from flambeau.distributed.pipelining._utils import InferenceMode, PipeliningMetadataError


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(x))


def test_the_trial_leaves_no_traces(alone):
    module = Counting()
    schedule = ScheduleGPipe(PipelineStage(module, 0, 1, CPU), 2, loss_fn=loss_fn)
    flambeau.manual_seed(3)
    output = schedule.step(x, target=x)
    assert module.norm.num_batches_tracked == 2
    other = Counting()
    flambeau.manual_seed(3)
    flambeau.testing.assert_close(output, flambeau.cat([other(part) for part in x.chunk(2)]))
    flambeau.testing.assert_close(module.norm.running_mean, other.norm.running_mean)


def test_said_shapes_spare_the_trial(alone):
    calls = []
    module = nn.Linear(3, 3)
    module.register_forward_hook(lambda *args: calls.append(1))
    one = x[:2].clone().requires_grad_()
    stage = PipelineStage(module, 0, 1, CPU, input_args=x[:2], output_args=one)
    ScheduleGPipe(stage, 2, loss_fn=loss_fn).step(x, target=x)
    assert stage._inference_mode is InferenceMode.STATIC and len(calls) == 2
    wrong = PipelineStage(module, 0, 1, CPU, input_args=x[:3], output_args=one)
    with pytest.raises(PipeliningMetadataError, match="shape mismatch"):
        ScheduleGPipe(wrong, 2, loss_fn=loss_fn).step(x, target=x)


@pytest.mark.parametrize("given", [3, "x", {"a": flambeau.ones(1)}])
def test_arguments_are_tensors(alone, given):
    with pytest.raises(PipeliningMetadataError, match="must be a tensor, tuple, or list"):
        PipelineStage(nn.Linear(3, 3), 0, 1, CPU, input_args=given)


def test_gradients_belong_to_arguments(alone):
    with pytest.raises(PipeliningMetadataError):
        PipelineStage(nn.Linear(3, 3), 0, 1, CPU, input_args=(x, x), input_grads=(x,))


def test_inputs_that_get_no_gradient(alone):
    """The second stage uses one of its two inputs: the first gets zeros for the other."""
    class First(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y, y * 2

    class Last(nn.Linear):
        def forward(self, a, b):
            return super().forward(a)
    flambeau.manual_seed(0)
    modules = [First(3, 3), Last(3, 3)]
    mine = [PipelineStage(module, i, 2, CPU) for i, module in enumerate(modules)]
    output = ScheduleInterleaved1F1B(mine, 2, loss_fn=loss_fn).step(x, target=x)
    flambeau.testing.assert_close(output, modules[1](*modules[0](x)))
    found = grads(mine)
    for module in modules:
        module.zero_grad()
    loss_fn(modules[1](*modules[0](x)), x).backward()
    flambeau.testing.assert_close(found, grads(mine))
