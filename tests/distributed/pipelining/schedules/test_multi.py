"""Schedules of several stages a rank."""
from __future__ import annotations

import pytest
from stage_cases import grads, loss_fn, reference, stages, x

import flambeau
from flambeau.distributed.pipelining import (
    ScheduleDualPipeV,
    ScheduleInterleaved1F1B,
)
from flambeau.distributed.pipelining.schedules import (
    FORWARD,
    OVERLAP_F_B,
    SEND_F,
    PipelineScheduleMulti,
    _PipelineScheduleRuntime,
)


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


def test_an_argument_that_is_gone(alone, caplog):
    PipelineScheduleMulti(stages(), 2, loss_fn=loss_fn, use_full_backward=True)
    assert "'use_full_backward' is no longer supported" in caplog.text


def test_stages_know_their_ranks(alone):
    mine = stages()
    schedule = PipelineScheduleMulti(mine, 2)
    assert (schedule.pp_group_size, schedule.rank, schedule._num_stages) == (1, 0, 2)
    assert mine[0].stage_index_to_group_rank is schedule.stage_index_to_group_rank
    assert [schedule._should_compute_loss(stage) for stage in mine] == [False, False]
    schedule = PipelineScheduleMulti(mine, 2, loss_fn=loss_fn)
    assert [schedule._should_compute_loss(stage) for stage in mine] == [False, True]
