"""Models cut by their graphs, and the stages made of them over several processes."""
from __future__ import annotations

import pytest

import flambeau
from flambeau import nn
from flambeau.distributed.pipelining import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    SplitPoint,
    pipe_split,
    pipeline,
)
from flambeau.distributed.pipelining._IR import (
    LossWrapper,
    PipeSequential,
    TrivialLossWrapper,
    _find_loss_from_output_and_spec,
    annotate_split_points,
    aten_pipe_split_alias,
)
from flambeau.distributed.pipelining._utils import PipeliningMetadataError

CPU = flambeau.device("cpu")
loss_fn = nn.functional.mse_loss


class Net(nn.Module):
    """Three stages: a parameter of two of them, a buffer, and inputs and values that skip one."""

    def __init__(self):
        super().__init__()
        self.l0 = nn.Linear(4, 4)
        self.l1 = nn.Linear(4, 4)
        self.head = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.p = nn.Parameter(flambeau.full((4,), 0.5))
        self.register_buffer("b", flambeau.ones(4))

    def forward(self, x, mask):
        early = flambeau.tanh(self.l0(x)) * self.p
        pipe_split()
        x = self.l1(early) + self.b
        pipe_split()
        return self.head(x) * self.p * mask + early


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))

    def forward(self, x):
        return self.layers(x)


def make(kind):
    flambeau.manual_seed(1)
    return kind()


def batch():
    generator = flambeau.Generator().manual_seed(2)
    x, target = (flambeau.randn(6, 4, generator=generator) for _ in range(2))
    return x, (x > 0).float(), target


def test_a_pipe_computes_what_the_model_does(alone):
    model = make(Net)
    x, mask, _ = batch()
    pipe = pipeline(model, (x, mask))
    assert pipe.num_stages == 3 and not pipe.has_loss_and_backward
    flambeau.testing.assert_close(pipe(x, mask)[0], model(x, mask))
    assert pipe.split_gm.code.strip() == """def forward(self, x, mask):
    submod_pp_0 = self.submod_pp_0(x);  x = None
    submod_pp_1 = self.submod_pp_1(submod_pp_0)
    submod_pp_2 = self.submod_pp_2(submod_pp_1, mask, submod_pp_0);  submod_pp_1 = mask = \
submod_pp_0 = None
    return (submod_pp_2,)"""
    names = [sorted(pipe.get_stage_module(place).state_dict()) for place in range(3)]
    assert names == [["l0.bias", "l0.weight", "p"], ["b", "l1.bias", "l1.weight"],
                     ["head.0.bias", "head.0.weight", "head.2.bias", "head.2.weight", "p"]]
    assert pipe.replicated_params == [{"submod_pp_0": "p", "submod_pp_2": "p"}]
    assert pipe.get_stage_module(0).l0.weight is model.l0.weight
    assert pipe.get_stage_module(0).p is not pipe.get_stage_module(2).p
    assert not any(node.target is aten_pipe_split_alias for place in range(3)
                   for node in pipe.get_stage_module(place).graph.nodes)
    with pytest.raises(ValueError, match="Invalid stage index 5!"):
        pipe.get_stage_module(5)


def test_split_points(alone):
    model = make(Chain)
    x, _, _ = batch()
    spec = {"layers.0": SplitPoint.END, "layers.3": SplitPoint.BEGINNING}
    pipe = pipeline(model, (x,), split_spec=spec)
    assert str(pipe.split_gm).split("\n\n")[0] == """GraphModule(
  (submod_pp_0): GraphModule(
    (layers): InterpreterModule(
      (0): InterpreterModule()
    )
  )
  (submod_pp_1): GraphModule(
    (layers): InterpreterModule(
      (1): InterpreterModule()
      (2): InterpreterModule()
    )
  )
  (submod_pp_2): GraphModule(
    (layers): InterpreterModule(
      (3): InterpreterModule()
    )
  )
)"""
    flambeau.testing.assert_close(pipe(x)[0], model(x))
    assert "forward" not in vars(model.layers[0])           # the model is as before


def test_split_policy(alone):
    def halve(gm):
        linears = gm.graph.find_nodes(op="call_function", target=flambeau.ops.aten.linear.default)
        with gm.graph.inserting_before(linears[2]):
            gm.graph.call_function(aten_pipe_split_alias)
        gm.recompile()
        return gm
    model = make(Chain)
    x, _, _ = batch()
    pipe = pipeline(model, (x,), split_policy=halve)
    assert pipe.num_stages == 2
    flambeau.testing.assert_close(pipe(x)[0], model(x))


def test_bad_models(alone):
    x, _, _ = batch()
    with pytest.raises(ValueError, match="Cannot specify both `split_spec` and `split_policy`"):
        pipeline(Chain(), (x,), split_spec={}, split_policy=lambda gm: gm)
    with pytest.raises(AttributeError, match="has no attribute '9'"):
        pipeline(Chain(), (x,), split_spec={"layers.9": SplitPoint.END})
    with pytest.raises(ValueError, match="Unknown split point type"):
        annotate_split_points(Chain(), {"layers.1": 3})

    class Branches(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x
    with pytest.raises(RuntimeError, match="cannot capture your model as a full graph"):
        pipeline(Branches(), (x,))


def run_stages(rank, kind, steps):
    """A stage of each rank; the gradients are those of the whole model in one process."""
    x, mask, target = batch()
    pipe = pipeline(make(Net), (x[:2], mask[:2]))
    stage = pipe.build_stage(rank, CPU)
    schedule = kind(stage, 3, loss_fn=loss_fn)
    losses: list = []
    for _ in range(steps):
        stage.submod.zero_grad()
        output = schedule.step(*((x, mask) if rank == 0 else ()),
                               target=target if rank == 2 else None, losses=losses)
    model = make(Net)
    whole = model(x, mask)
    loss = loss_fn(whole, target)
    loss.backward()
    if rank == 2:
        flambeau.testing.assert_close(output, whole)
        flambeau.testing.assert_close(sum(losses) / 3, loss)
    wanted = dict(model.named_parameters())
    shared = flambeau.distributed
    for name, parameter in stage.submod.named_parameters():
        if name != "p":
            flambeau.testing.assert_close(parameter.grad, wanted[name].grad)
    total = getattr(stage.submod, "p", nn.Parameter(flambeau.zeros(4)))
    total = flambeau.zeros(4) if total.grad is None else total.grad.clone()
    shared.all_reduce(total)                # of the copies of the parameter
    flambeau.testing.assert_close(total, wanted["p"].grad)


@pytest.mark.parametrize("kind", [ScheduleGPipe, Schedule1F1B])
def test_stages_on_three_ranks(processes, kind):
    processes(run_stages, kind, 2, size=3)


def run_several(rank):
    x, _, target = batch()
    spec = {f"layers.{place}": SplitPoint.BEGINNING for place in (1, 2, 3)}
    pipe = pipeline(make(Chain), (x[:3],), split_spec=spec)
    stages = [pipe.build_stage(place, CPU) for place in (rank, rank + 2)]
    schedule = ScheduleInterleaved1F1B(stages, 2, loss_fn=loss_fn)
    output = schedule.step(*((x,) if rank == 0 else ()), target=target if rank == 1 else None)
    model = make(Chain)
    whole = model(x)
    loss_fn(whole, target).backward()
    if rank == 1:
        flambeau.testing.assert_close(output, whole)
    wanted = dict(model.named_parameters())
    for stage in stages:
        for name, parameter in stage.submod.named_parameters():
            flambeau.testing.assert_close(parameter.grad, wanted[name].grad)


def test_several_traced_stages_a_rank(processes):
    processes(run_several, size=2)


def test_values_that_skip_stages_need_one_stage_a_rank(alone):
    x, mask, target = batch()
    pipe = pipeline(make(Net), (x[:2], mask[:2]))
    schedule = ScheduleInterleaved1F1B([pipe.build_stage(place, CPU) for place in range(3)], 3,
                                       loss_fn=loss_fn)
    with pytest.raises(NotImplementedError, match="skips a stage"):
        schedule.step(x, mask, target=target)


def test_microbatches_of_another_shape(alone):
    x, mask, _ = batch()
    stage = pipeline(make(Net), (x, mask)).build_stage(0, CPU)
    stage._prepare_forward_infra(2, (x[:3], mask[:3]))
    stage.forward_one_chunk(0, (x[:3], mask[:3]))
    with pytest.raises(PipeliningMetadataError, match=r"shape mismatch: .*\[6, 4\].*\[3, 4\]"):
        stage.get_fwd_send_ops(0)


def test_wrappers():
    sequence = PipeSequential.from_sequential(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)))
    assert sequence(flambeau.ones(1, 2)).shape == (1, 1)
    loss = TrivialLossWrapper(nn.Linear(2, 2), nn.MSELoss())(flambeau.ones(1, 2),
                                                                 flambeau.ones(1, 2))
    assert loss.shape == () and TrivialLossWrapper.loss_spec
    with pytest.raises(NotImplementedError, match="does not have an overridden forward"):
        LossWrapper(nn.Linear(2, 2), nn.MSELoss())(1)
    with pytest.raises(RuntimeError, match="Loss spec must specify a dynamic value but got 1"):
        _find_loss_from_output_and_spec((1, 2), (True, False))
    with pytest.raises(RuntimeError, match="Did not find loss value in specification"):
        _find_loss_from_output_and_spec((1, 2), (False, False))
