"""Whole parameters outside of passes."""
import pytest
from fsdp_cases import BY_LAYER, network, wrapped

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP


@pytest.mark.parametrize(("options", "message"), [
    ({"with_grads": True}, "with_grads=True, use_orig_params=False, offload_to_cpu=False is not "
                           "supported yet"),
    ({"offload_to_cpu": True}, "offload_to_cpu=True and NO_SHARD is not supported yet"),
    ({"rank0_only": True}, "writeback=True and rank0_only=True is not supported yet")])
def test_what_is_refused(alone, options, message):
    with pytest.raises(NotImplementedError, match=message), \
            FSDP.summon_full_params(wrapped(network()), **options):
        pass


@pytest.mark.parametrize("use_orig_params", [False, True])
def test_values_are_written_back(alone, use_orig_params):
    model = wrapped(network(), use_orig_params=use_orig_params)
    with FSDP.summon_full_params(model):
        assert [tuple(p.shape) for p in model.parameters()] == [(5, 4), (5,), (3, 5), (3,), (3,),
                                                                (3,)]
        with torch.no_grad():
            model.module[0].weight.fill_(2)
    assert (model.state_dict()["0.weight"] == 2).all()
    with FSDP.summon_full_params(model, writeback=False), torch.no_grad():
        assert (model.module[0].bias != 7).all()
    assert len(list(model.parameters())) == (6 if use_orig_params else 1)


def test_inner_ones_only_if_asked(alone):
    model = wrapped(network(), auto_wrap_policy=BY_LAYER)
    with FSDP.summon_full_params(model, recurse=False):
        assert sorted(tuple(p.shape) for p in model.parameters()) == [(5,), (5, 4), (24,)]


def pieces(rank):
    model = FSDP(network(), use_orig_params=True)
    model(torch.ones(1, 4)).pow(2).sum().backward()
    with FSDP.summon_full_params(model, with_grads=True), torch.no_grad():
        model.module[0].bias.fill_(3)
        assert model.module[0].weight.grad.shape == (5, 4)
        model.module[0].weight.grad.fill_(5)
    with FSDP.summon_full_params(model, rank0_only=True, writeback=False, offload_to_cpu=True):
        assert (next(model.parameters()).shape == (5, 4)) is (rank == 0)
    with FSDP.summon_full_params(model, writeback=False), torch.no_grad():
        assert model.module[0].bias.tolist() == [3] * 5
        model.module[0].bias.fill_(9)
    with FSDP.summon_full_params(model, with_grads=True):
        assert (model.module[0].weight.grad == 5).all()
        dist.barrier()


def test_two_processes(processes):
    processes(pieces)
