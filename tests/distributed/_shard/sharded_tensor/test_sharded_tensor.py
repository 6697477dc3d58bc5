"""Sharded tensors, filled in the ways in which tensors are."""
import pytest
from shard_cases import deprecated, piece, rows, whole

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed._shard import sharded_tensor as st

pytestmark = deprecated


@pytest.mark.parametrize(("make", "value"), [(st.ones, 1.0), (st.zeros, 0.0)])
@pytest.mark.parametrize("size", [(3, 2), ((3, 2),), ([3, 2],), (0,)])
def test_one_value(alone, make, value, size):
    made = make(whole(), *size, dtype=torch.float64, requires_grad=True)
    local = made.local_tensor()
    assert made.size() == local.shape and made.dtype is local.dtype is torch.float64
    assert (local == value).all() and local.is_leaf and local.requires_grad and made.requires_grad


def test_full(alone):
    made = st.full(whole(), (2, 3), 5, dtype=torch.int64)
    assert made.local_tensor().tolist() == [[5] * 3] * 2
    assert st.full(whole(), [2], 5).dtype is torch.float32
    with pytest.raises(TypeError):
        st.full(whole(), 3, 5)


def test_random_numbers_are_those_of_tensors(alone):
    for make in (torch.rand, torch.randn):
        torch.manual_seed(3)
        expected = make(4, 2)
        torch.manual_seed(3)
        assert torch.equal(getattr(st, make.__name__)(whole(), 4, 2).local_tensor(), expected)


@pytest.mark.parametrize(("options", "message"), [
    ({"layout": torch.sparse_coo}, "Only torch.strided layout is currently supported"),
    ({"memory_format": torch.channels_last},
     "Only torch.contiguous_format memory_format is currently supported")])
def test_forms_that_are_refused(alone, options, message):
    with pytest.raises(ValueError, match=message):
        st.empty(whole(), 2, **options)


def test_attributes_in_state_dicts(alone):
    def module(value):
        made = nn.Sequential(nn.Linear(1, 1))
        made[0].extra = st.full(whole(), (2,), value)
        made._register_state_dict_hook(st.state_dict_hook)
        made._register_load_state_dict_pre_hook(st.pre_load_state_dict_hook, True)
        return made
    first, second = module(3.0), module(4.0)
    state = first.state_dict(prefix="m.")
    assert state["m.0.extra"] is first[0].extra
    second.load_state_dict(first.state_dict(), strict=False)
    assert second[0].extra is first[0].extra


def test_an_op_of_ones_own(alone):
    table = st.api._CUSTOM_SHARDED_OPS

    @st.custom_sharded_op_impl(torch.sum)
    def total(types, args, kwargs, process_group):
        return args[0].local_tensor().sum()
    try:
        assert torch.sum(st.ones(whole(), 3)) == 3
    finally:
        del table[torch.sum]
    with pytest.raises(RuntimeError, match=r"torch function 'sum'.* not supported for"):
        torch.sum(st.ones(whole(), 3))


def making(rank):
    ones = st.ones(rows(), 5, 2)
    assert ones.size() == (5, 2) and ones.local_tensor().shape == (3 - rank, 2)
    assert ones.metadata().shards_metadata[rank].placement.rank() == rank
    made = st.init_from_local_shards([piece(torch.full((2, 3), rank), 2 * rank, 0, rank=rank)],
                                     4, 3)
    assert made.sharding_spec() == rows()
    with pytest.raises(ValueError, match="Total volume of shards: 12 does not match"):
        st.init_from_local_shards([piece(torch.ones(2, 3), 2 * rank, 0, rank=rank)], 5, 3)
    with pytest.raises(ValueError, match="overlap"):
        st.init_from_local_shards([piece(torch.ones(2, 3), 0, 0, rank=rank)], 4, 3)
    one_here = st.init_from_local_shards([piece(torch.ones(2), 0)] if rank == 0 else [], 2)
    assert len(one_here.local_shards()) == 1 - rank
    alone = [dist.new_group([r]) for r in range(2)][rank]
    spec = st.init_from_local_shards([piece(torch.ones(2), 0, rank=rank)], 2, process_group=alone)
    assert spec.metadata().shards_metadata[0].placement.rank() == rank


def test_two_processes(processes):
    processes(making)
