"""Copies, and what is known without values."""
import copy

import pytest
from shard_cases import deprecated, whole

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_tensor import ShardedTensor, ShardedTensorMetadata
from flambeau.distributed._shard.sharded_tensor._ops import tensor_ops
from flambeau.testing._internal.distributed.fake_pg import FakeStore

pytestmark = deprecated


def test_what_needs_no_values(alone):
    a = st.ones(whole(), 3, 2, dtype=torch.float64)
    assert (a.shape, a.size(1), a.dim(), a.ndim) == (torch.Size([3, 2]), 2, 2, 2)
    assert a.dtype is torch.float64 and a.layout is torch.strided and a.is_floating_point()
    assert a.is_contiguous() and a.is_leaf and a.grad is None and a.grad_fn is None
    assert not a.requires_grad and not a.is_meta and not a.is_pinned()
    assert a.device == torch.device("cpu")


def test_copies_have_memory_of_their_own(alone):
    a = st.ones(whole(), 2)
    for made in (a.clone(), copy.deepcopy(a), a.clone(memory_format=torch.preserve_format)):
        made.local_tensor().zero_()
        assert made.metadata() == a.metadata() and made.metadata() is not a.metadata()
    assert a.local_tensor().all()
    with pytest.raises(RuntimeError, match=r"Only support torch.preserve_format for ShardedTensor"):
        a.clone(memory_format=torch.contiguous_format)


def test_values_of_another(alone):
    a = st.zeros(whole(), 2)
    assert a.copy_(st.ones(whole(), 2)) is a and a.local_tensor().tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="inplace copy can only happen between two ShardedTensor "
                                           "with same metadata!"):
        a.copy_(st.ones(whole(), 3))


def test_types_of_others(alone):
    a = st.ones(whole(), 2)
    for other in (torch.ones(1, dtype=torch.int8), st.ones(whole(), 3, dtype=torch.int8)):
        made = a.type_as(other)
        assert made.dtype is made.local_tensor().dtype is torch.int8
        assert made.metadata().tensor_properties.dtype is torch.int8
    assert a.type_as(a) is a and a.dtype is torch.float32


def test_checks_of_types(alone):
    a = st.ones(whole(), 2)
    with pytest.raises(ValueError, match="Needs to give a tensor to cast type as!"):
        tensor_ops.sharded_type_as_check(a)
    with pytest.raises(ValueError, match="Needs to give a Tensor or ShardedTensor to cast type as"):
        tensor_ops.sharded_type_as_check(a, torch.int8)


def test_gradients(alone):
    a = st.ones(whole(), 2)
    assert a.requires_grad_() is a
    assert a.requires_grad and a.local_tensor().requires_grad
    assert a.metadata().tensor_properties.requires_grad
    b = a.detach()
    assert not (b.requires_grad or b.local_tensor().requires_grad
                or b.metadata().tensor_properties.requires_grad)
    assert not a.requires_grad_(requires_grad=False).local_tensor().requires_grad


def test_a_process_without_pieces():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        at_the_other = st.api.shard_spec.ChunkShardingSpec(0, ["rank:1/cpu"])
        a = st.ones(at_the_other, 2)
        assert a.local_shards() == [] and not a.is_meta
        made = ShardedTensor._init_from_local_shards_and_global_metadata(
            [], ShardedTensorMetadata(a.metadata().shards_metadata, a.size()))
        assert made.size() == (2,)
    finally:
        dist.destroy_process_group()
