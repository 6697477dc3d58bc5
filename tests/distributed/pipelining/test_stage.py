"""What stages say, check and leave as it was."""
from __future__ import annotations

import pytest

import flambeau
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    _ScheduleForwardOnly,
)
from flambeau.distributed.pipelining._utils import InferenceMode, PipeliningMetadataError
from flambeau.distributed.pipelining.schedules import (
    FORWARD,
    OVERLAP_F_B,
    SEND_F,
    PipelineScheduleMulti,
    ScheduleDualPipeV,
    _PipelineScheduleRuntime,
)
from flambeau.distributed.pipelining.stage import _normalize_model_output_as_tuple, _RecvInfo
from flambeau.nn.parallel import DistributedDataParallel

CPU = flambeau.device("cpu")
loss_fn = nn.functional.mse_loss
x = flambeau.randn(4, 3, generator=flambeau.Generator().manual_seed(1))


def linears(count=2):
    flambeau.manual_seed(0)
    return [nn.Linear(3, 3) for _ in range(count)]


def stages(count=2):
    return [PipelineStage(module, place, count, CPU)
            for place, module in enumerate(linears(count))]


def reference(count=2, factor=1.0):
    model = nn.Sequential(*linears(count))
    output = model(x)
    (loss_fn(output, x * factor)).backward()
    return output, [parameter.grad for parameter in model.parameters()]


def grads(found):
    return [parameter.grad for stage in found for parameter in stage.submod.parameters()]


# ---- what is wrong ------------------------------------------------------------------------------

def test_bad_stages(alone):
    module = nn.Linear(3, 3)
    with pytest.raises(ValueError, match="Stage index 1 is out of range of 1"):
        PipelineStage(module, 1, 1, CPU)
    with pytest.raises(PipeliningMetadataError, match="must be a tensor, tuple, or list"):
        PipelineStage(module, 0, 1, CPU, input_args=3)
    with pytest.raises(AttributeError, match="'list' object has no attribute 'num_stages'"):
        ScheduleGPipe([PipelineStage(module, 0, 1, CPU)], 2)
    assert repr(_RecvInfo("n", None, None, None, is_root_arg=True)) == (
        "_RecvInfo(input=n, root_arg=True)")
    assert _normalize_model_output_as_tuple([1, 2]) == (1, 2)


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


# ---- a trial of the model -----------------------------------------------------------------------

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


# ---- schedules ----------------------------------------------------------------------------------

def test_orders_in_files(alone, tmp_path):
    schedule = ScheduleInterleaved1F1B(stages(), 2, loss_fn=loss_fn)
    schedule._dump_csv(tmp_path / "all.csv")
    schedule._dump_csv(tmp_path / "compute.csv", format="compute_only")
    assert (tmp_path / "compute.csv").read_text().split() == ["0F0,,1F0,1B0,0F1,0B0,1F1,1B1,,0B1"]
    _, wanted = reference()
    for name, form in (("all", "compute_comms"), ("compute", "compute_only")):
        mine = stages()
        loaded = _PipelineScheduleRuntime(mine, 2, loss_fn=loss_fn)
        loaded._load_csv(tmp_path / f"{name}.csv", format=form)
        assert loaded.pipeline_order_with_comms == schedule.pipeline_order_with_comms
        loaded.step(x, target=x)
        flambeau.testing.assert_close(grads(mine), wanted)
    with pytest.raises(ValueError, match="found communication action '0UNSHARD' at rank 0, pos"):
        loaded._load_csv(tmp_path / "all.csv")
    with pytest.raises(NotImplementedError, match="format='x' is not implemented"):
        loaded._load_csv(tmp_path / "all.csv", format="x")
    mine = stages()
    plain = PipelineScheduleMulti(mine, 2, loss_fn=loss_fn)
    plain._load_csv(tmp_path / "compute.csv")
    plain.step(x, target=x)
    flambeau.testing.assert_close(grads(mine), wanted)
    with pytest.raises(AssertionError, match='format must be "compute_only"'):
        plain._load_csv(tmp_path / "compute.csv", format="compute_comms")


def test_custom_functions(alone):
    mine, seen = stages(), []
    schedule = ScheduleDualPipeV(mine, 2, loss_fn=loss_fn)

    def overlapped(action, context):
        seen.append(str(action))
        forward, backward = action.sub_actions
        assert context.schedule_ref is schedule and len(context.arg_mbs) == 2
        stage = mine[forward.stage_index]
        output = stage.forward_one_chunk(forward.microbatch_index, context.arg_mbs[0])
        schedule._maybe_compute_loss(stage, output, context.target_mbs, forward.microbatch_index)
        stage = mine[backward.stage_index]
        schedule.backward_counter[backward.stage_index] += 1
        stage.backward_one_chunk(backward.microbatch_index,
                                 loss=schedule._maybe_get_loss(stage, backward.microbatch_index))
        if not stage.is_first:
            mine[0].set_local_bwd_input(stage.get_local_bwd_output(backward.microbatch_index),
                                        backward.microbatch_index)
    schedule.register_custom_function(OVERLAP_F_B, overlapped)
    schedule.step(x, target=x)
    assert seen == ["(1F1;0B0)OVERLAP_F_B"]
    flambeau.testing.assert_close(grads(mine), reference()[1])
    with pytest.raises(ValueError, match=r"Invalid computation type _ComputationType\.SEND_F"):
        schedule.register_custom_function(SEND_F, overlapped)


def test_a_failing_action_is_shown(alone, caplog):
    schedule = ScheduleInterleaved1F1B(stages(), 2, loss_fn=loss_fn)

    def fail(action, context):
        raise KeyError(str(action))
    schedule.register_custom_function(FORWARD, fail)
    with pytest.raises(KeyError, match="0F0"):
        schedule.step(x, target=x)
    assert "caught exception at step 2 when running action 0F0" in caplog.text
    assert "Step 02: 0F0          <-- ERROR HERE" in caplog.text


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


def test_gradients_of_weights_by_the_user(alone):
    runs = []
    mine = [PipelineStage(module, place, 2, CPU, dw_builder=lambda: lambda: runs.append(1))
            for place, module in enumerate(linears())]
    ScheduleInterleavedZeroBubble(mine, 2, loss_fn=loss_fn).step(x, target=x)
    assert len(runs) == 4
    with pytest.raises(AssertionError, match="without first calling `backward_one_chunk"):
        mine[0].backward_weight_one_chunk(7)


def run_data_parallel(rank, kind):
    """A pipeline of one rank on each, and gradients that both share."""
    groups = [dist.new_group([0]), dist.new_group([1])]
    both = kind is not ScheduleGPipe
    mine = [PipelineStage(DistributedDataParallel(module), place, 1 + both, CPU,
                          group=groups[rank])
            for place, module in enumerate(linears(1 + both))]
    schedule = kind(mine if both else mine[0], 2, loss_fn=loss_fn)
    for _ in range(2):
        for stage in mine:
            stage.submod.zero_grad()
        schedule.step(x, target=x * (rank + 1))
    wanted = [(a + b) / 2 for a, b in zip(reference(1 + both)[1], reference(1 + both, 2.0)[1])]
    flambeau.testing.assert_close(grads(mine), wanted)


@pytest.mark.parametrize("kind", [ScheduleGPipe, ScheduleInterleaved1F1B,
                                  ScheduleInterleavedZeroBubble])
def test_data_parallel_stages(processes, kind):
    processes(run_data_parallel, kind, size=2)
