"""Collectives of a group of one."""
from __future__ import annotations

import pytest

import flambeau
from flambeau import distributed as dist

NOT_INITIALIZED = "Default process group has not been initialized"


def test_without_a_group():
    assert dist.is_available() and not dist.is_initialized()
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, dist.get_backend,
                 lambda: dist.all_reduce(flambeau.ones(1))):
        with pytest.raises(ValueError, match=NOT_INITIALIZED):
            call()


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"backend": "nccl", "store": dist.HashStore(), "rank": 0, "world_size": 1}, RuntimeError,
     "Distributed package doesn't have NCCL built in"),
    ({"backend": "foo", "store": dist.HashStore(), "rank": 0, "world_size": 1}, AssertionError,
     "Unknown backend type foo"),
    ({"backend": "gloo", "init_method": "foo://x", "rank": 0, "world_size": 1}, RuntimeError,
     "No rendezvous handler for foo://"),
    ({"backend": "gloo", "store": dist.HashStore()}, AssertionError, "world_size must be positive"),
    ({"backend": "gloo", "init_method": "env://", "store": dist.HashStore(), "rank": 0,
      "world_size": 1}, AssertionError, "Cannot specify both"),
    ({"backend": "gloo"}, ValueError, "environment variable RANK expected, but not set"),
])
def test_bad_arguments(arguments, error, message, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(error, match=message):
        dist.init_process_group(**arguments)


def test_from_the_environment(monkeypatch):
    for name, value in (("RANK", 0), ("WORLD_SIZE", 1), ("MASTER_ADDR", "127.0.0.1"),
                        ("MASTER_PORT", 0)):
        monkeypatch.setenv(name, str(value))
    dist.init_process_group()
    assert dist.get_rank() == 0 and dist.get_backend() == "undefined"
    assert dist.get_backend_config() == "cpu:gloo"
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group()
    dist.destroy_process_group()
    assert not dist.is_initialized()


def test_reductions_are_the_identity(alone):
    x = flambeau.arange(3.0)
    for op in ("SUM", "AVG", "MAX", "PRODUCT"):
        assert dist.all_reduce(x, op=getattr(dist.ReduceOp, op)) is None
    dist.reduce(x, 0)
    dist.broadcast(x, 0)
    assert x.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"Cannot use ReduceOp\.BAND with non-integral dtype"):
        dist.all_reduce(x, op=dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="broadcast: invalid root rank: 1"):
        dist.broadcast(x, 1)
    with pytest.raises(TypeError, match=r"Expected parameter `tensor` of type torch\.Tensor"):
        dist.all_reduce([x])


def test_work(alone):
    x = flambeau.ones(2)
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.get_future().wait()[0] is x


def test_gather_and_scatter(alone):
    x, out = flambeau.arange(3.0), flambeau.zeros(3)
    for call in (lambda o: dist.all_gather([o], x), lambda o: dist.gather(x, [o]),
                 lambda o: dist.scatter(o, [x]), lambda o: dist.reduce_scatter(o, [x]),
                 lambda o: dist.all_gather_into_tensor(o, x),
                 lambda o: dist.reduce_scatter_tensor(o, x),
                 lambda o: dist.all_to_all([o], [x]), lambda o: dist.all_to_all_single(o, x)):
        out.zero_()
        call(out)
        assert out.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"invalid tensor size at index 0 \(expected \(3\)"):
        dist.all_gather([flambeau.zeros(2)], x)
    with pytest.raises(RuntimeError, match="expected length 1, got 2"):
        dist.all_gather([out, out], x)
    with pytest.raises(ValueError, match="different dtypes"):
        dist.all_gather([flambeau.zeros(3, dtype=flambeau.int32)], x)
    with pytest.raises(ValueError, match="must be specified on source rank"):
        dist.scatter(out)


def test_objects(alone):
    found, given = [None], {1: [2]}
    dist.all_gather_object(found, given)
    assert found == [given] and found[0] is not given
    longer = [None, 1]
    dist.all_gather_object(longer, given)
    assert longer == [given, 1]         # what no process fills stays
    dist.gather_object(5, found)
    dist.gather_object(5, longer)
    assert found == [5] and longer == [5, 1]
    dist.scatter_object_list(found, [7])
    assert found == [7]
    dist.broadcast_object_list(found, src=0)


def test_groups(alone):
    group = dist.new_group([0])
    assert dist.get_rank(group) == 0 and dist.get_world_size(group) == 1
    assert dist.get_process_group_ranks(group) == [0] and dist.get_pg_count() == 2
    with pytest.raises(ValueError, match=r"Rank 1 is out of range. Valid ranks are 0 to 0"):
        dist.new_group([1])
    outside = dist.GroupMember.NON_GROUP_MEMBER
    assert dist.get_rank(outside) == -1
    with pytest.warns(UserWarning, match="does not belong to the given group"):
        assert dist.all_reduce(flambeau.ones(1), group=outside) is None
    mine, every = dist.new_subgroups()
    assert every == [mine]


def test_messages_to_oneself(alone):
    x = flambeau.ones(2)
    with pytest.raises(ValueError, match="Invalid destination rank"):
        dist.send(x, 0)
    with pytest.raises(ValueError, match="Invalid destination rank: 1"):
        dist.isend(x, 1)
    with pytest.raises(ValueError, match="Expected ``op`` to be of type"):
        dist.P2POp(print, x, 1)
    dist.barrier()
    dist.monitored_barrier()


def test_backends():
    assert dist.Backend("GLOO") == "gloo" and dist.Backend.NCCL == "nccl"
    with pytest.raises(ValueError, match="string-ish"):
        dist.Backend(3)
    assert repr(dist.ReduceOp.SUM) == "<RedOpType.SUM: 0>"
    assert not dist.supports_complex(dist.ReduceOp.MAX)
