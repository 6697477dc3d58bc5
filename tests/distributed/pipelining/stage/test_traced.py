"""Stages of a traced model in one process."""
from __future__ import annotations

import pytest

import flambeau
from flambeau import nn
from flambeau.distributed.pipelining import (
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    pipe_split,
    pipeline,
)
from flambeau.distributed.pipelining._utils import PipeliningMetadataError
from flambeau.distributed.pipelining.stage.traced import _Source

CPU = flambeau.device("cpu")
loss_fn = nn.functional.mse_loss


class Net(nn.Module):
    """Two stages; the second uses both values of the first, of which one twice."""

    def __init__(self, skips=False):
        super().__init__()
        self.a, self.b, self.skips = nn.Linear(4, 4), nn.Linear(4, 4), skips

    def forward(self, x):
        one = flambeau.tanh(self.a(x))
        two = one * 2
        pipe_split()
        three = self.b(one) + two
        if self.skips:
            pipe_split()
            three = three * one
        return three


def made(skips=False):
    flambeau.manual_seed(0)
    model, x = Net(skips), flambeau.randn(6, 4)
    pipe = pipeline(model, (x[:2],))
    return model, x, pipe, [pipe.build_stage(i, CPU) for i in range(pipe.num_stages)]


def test_the_graph_says_what_goes_where(alone):
    _, _, pipe, (first, last) = made()
    assert pipe.num_stages == 2 and first.submod_to_stage_index[last.node.target] == 1
    assert first.get_stage_index_of_submod(last.node.target) == 1
    with pytest.raises(AssertionError, match="Stage id of x not found"):
        first.get_stage_index_of_submod("x")
    assert first.find_dst_rank(last.node) == 1
    assert first.find_dst_rank(first.pipe_info.graph.output_node()) is None
    used = [first._uses(_Source(0, place)) for place in range(2)]
    assert sorted(use for uses in used for use in uses) == [(1, 0), (1, 1)]


def test_losses_and_gradients(alone):
    model, x, _, stages = made()
    losses: list = []
    output = ScheduleInterleaved1F1B(stages, 3, loss_fn=loss_fn).step(x, target=x, losses=losses)
    flambeau.testing.assert_close(output, model(x))
    found = {name: p.grad for stage in stages for name, p in stage.submod.named_parameters()}
    model.zero_grad()
    loss_fn(model(x), x).backward()
    flambeau.testing.assert_close(found, {n: p.grad for n, p in model.named_parameters()})
    assert len(losses) == 3


def test_microbatches_have_the_shape_of_the_example(alone):
    _, x, _, stages = made()
    with pytest.raises(PipeliningMetadataError, match="shape mismatch"):
        first = stages[0]
        first._prepare_forward_infra(1, (x,))
        first.forward_one_chunk(0, (x,))
        first.get_fwd_send_ops(0)


def test_inputs_of_the_pipe(alone):
    flambeau.manual_seed(0)
    model, x = nn.Linear(4, 4), flambeau.randn(2, 4)
    stage = pipeline(model, (x,)).build_stage(0, CPU)
    stage._prepare_forward_infra(1, (x,))
    for args, kwargs in (((x,), {}), ((), {stage._input_names[0]: x})):
        flambeau.testing.assert_close(stage.forward_one_chunk(0, args, kwargs), model(x))
    with pytest.raises(TypeError, match="missing inputs of the pipe"):
        stage.forward_one_chunk(0, (), {})


def test_values_that_skip_a_stage_need_one_stage_a_rank(alone):
    _, x, _, stages = made(skips=True)
    assert len(stages) == 3
    with pytest.raises(NotImplementedError, match="a value that skips a stage"):
        ScheduleInterleaved1F1B(stages, 3, loss_fn=loss_fn).step(x, target=x)


def test_one_stage(alone):
    flambeau.manual_seed(0)
    model, x = nn.Linear(4, 4), flambeau.randn(4, 4)
    stage = pipeline(model, (x[:2],)).build_stage(0, CPU)
    flambeau.testing.assert_close(ScheduleGPipe(stage, 2, loss_fn=loss_fn).step(x, target=x),
                                  model(x))
