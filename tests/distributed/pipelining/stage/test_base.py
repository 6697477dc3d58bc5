"""What all stages do."""
from __future__ import annotations

import pytest
from stage_cases import CPU, grads, linears, loss_fn, reference, stages, x

import flambeau
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.pipelining import (
    PipelineStage,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
)
from flambeau.distributed.pipelining._utils import PipeliningMetadataError
from flambeau.distributed.pipelining.stage import _normalize_model_output_as_tuple, _RecvInfo
from flambeau.nn.parallel import DistributedDataParallel
from flambeau.testing._internal.distributed.fake_pg import FakeStore


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


def test_what_is_received_is_shown():
    info = _RecvInfo("x", 2, flambeau.ones(3), None)
    assert repr(info) == "_RecvInfo(input=x, source=2, shape=torch.Size([3]), meta=None)"
    assert repr(_RecvInfo("x", 2, None, None)) == (
        "_RecvInfo(input=x, source=2, shape=None, meta=None)")


def test_outputs_are_a_tuple():
    for value, wanted in ((3, (3,)), ((1, 2), (1, 2)), ([], ()), (None, (None,))):
        assert _normalize_model_output_as_tuple(value) == wanted


def test_places(alone):
    first, last = stages()
    assert (first.is_first, first.is_last) == (True, False) == (last.is_last, last.is_first)
    assert first.stage_index_to_group_rank == {0: 0, 1: 0}
    assert first._resolve_peer_global_rank(1) == 0 and first.log_prefix == "[Stage 0]"
    with pytest.raises(RuntimeError, match="before chunks have been configured"):
        first._check_chunk_id(0)
    first.chunks = 2
    with pytest.raises(RuntimeError, match=r"Chunk id 2 is out of range \[0, 2\)"):
        first._check_chunk_id(2)


def test_values_that_stay_here_are_new_leaves(alone):
    _, last = stages()
    last.args_recv_info[0] = (_RecvInfo("x", 0, None, None),)
    y = flambeau.ones(2, requires_grad=True) * 2
    last.set_local_fwd_input(y, 0)
    found = last.args_recv_info[0][0].buffer
    assert found.is_leaf and found.requires_grad and found.data_ptr() == y.data_ptr()
    for call, words in ((lambda: last.get_local_bwd_output(0), "doesn't have backward"),
                        (lambda: last.set_local_bwd_input([], 0), "Expected tuple, got"),
                        (lambda: last.set_local_fwd_input(3, 0), "expected tensor values")):
        with pytest.raises(AssertionError, match=words):
            call()
    last.has_backward = True
    with pytest.raises(AssertionError, match="can't set bwd input if this stage is last"):
        last.set_local_bwd_input((None,), 0)


def test_a_group_larger_than_the_pipeline():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    try:
        with pytest.raises(RuntimeError, match="Pipeline group size 4 cannot be larger than"):
            PipelineStage(nn.Linear(1, 1), 0, 2, CPU)
    finally:
        dist.destroy_process_group()
