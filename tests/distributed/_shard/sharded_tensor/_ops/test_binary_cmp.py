"""Are two sharded tensors the same?"""
import pytest
from shard_cases import columns, deprecated, rows, whole

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_tensor._ops.binary_cmp import binary_cmp

pytestmark = deprecated


def test_both_have_to_be_sharded(alone):
    a = st.ones(whole(), 2)
    for compare in (torch.equal, torch.allclose):
        with pytest.raises(TypeError, match=rf"Both arguments to torch.{compare.__name__}\(?\)? "
                                            "need to be of type ShardedTensor"):
            compare(a, torch.ones(2))
    with pytest.raises(ValueError, match=r"Expected two arguments for torch.equal"):
        binary_cmp(torch.equal, (), (a,))


def test_groups_have_to_be_the_same(alone):
    a, other = st.ones(whole(), 2), st.ones(whole(), 2, process_group=dist.new_group([0]))
    assert binary_cmp(torch.equal, (), (a, other)) is False
    with pytest.raises(RuntimeError, match="should use the same ProcessGroup"):
        torch.equal(a, other)


def comparing(rank):
    a = st.ones(rows(), 4, 2)
    assert torch.equal(a, a.clone()) and torch.allclose(a, a)
    for other in (st.zeros(rows(), 4, 2), st.ones(columns(0, 1), 4, 2), st.ones(rows(), 2, 4),
                  st.ones(rows(), 4, 2, dtype=torch.float64)):
        assert not torch.equal(a, other) and not torch.allclose(a, other)
    near = st.full(rows(), (4, 2), 1.001)
    assert not torch.allclose(a, near) and torch.allclose(a, near, rtol=0.01)
    if rank == 1:
        near.local_tensor()[0] = 2          # known to one process, said by both
    assert not torch.allclose(a, near, rtol=0.01)


def test_two_processes(processes):          # which PyTorch compares where there is a GPU
    processes(comparing)
