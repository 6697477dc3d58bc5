"""How groups are made, who is in them, and what is known of them."""
from __future__ import annotations

from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau._C import _distributed_c10d as c
from flambeau.distributed import distributed_c10d as c10d


def test_without_a_group():
    assert dist.is_available() and not dist.is_initialized()
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, dist.get_backend,
                 lambda: dist.all_reduce(torch.ones(1))):
        with pytest.raises(ValueError, match=NOT_INITIALIZED):
            call()

NOT_INITIALIZED = "Default process group has not been initialized"


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


def test_who_is_in_a_group(alone):
    group = dist.new_group([0])
    assert dist.get_rank(group) == 0 and dist.get_world_size(group) == 1
    assert dist.get_process_group_ranks(group) == [0] and dist.get_pg_count() == 2
    with pytest.raises(ValueError, match=r"Rank 1 is out of range. Valid ranks are 0 to 0"):
        dist.new_group([1])
    outside = dist.GroupMember.NON_GROUP_MEMBER
    assert dist.get_rank(outside) == -1
    with pytest.warns(UserWarning, match="does not belong to the given group"):
        assert dist.all_reduce(torch.ones(1), group=outside) is None
    mine, every = dist.new_subgroups()
    assert every == [mine]


def test_processes_that_do_not_come_are_named(tmp_path):
    with pytest.raises(dist.DistNetworkError, match=r"ranks \[1\] have not called rank 0"):
        dist.init_process_group("gloo", init_method=f"file://{tmp_path}/f", rank=0, world_size=2,
                                timeout=timedelta(seconds=0.3))
    assert not dist.is_initialized()


def again(rank, port):
    for _ in range(2):
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                                world_size=2)
        dist.barrier()
        dist.destroy_process_group()


def test_a_group_is_made_again_at_the_same_port(processes):
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    port = store.port
    del store
    processes(again, port, group=False)


def groups_of_some(rank):
    mine = dist.split_group(dist.group.WORLD, [[0], [1]])
    assert dist.get_process_group_ranks(mine) == [rank] and mine.size() == 1
    own = dist.new_group([rank], use_local_synchronization=True)
    assert own.size() == 1 and len(own.group_name) == 40
    tagged = c10d._find_or_create_pg_by_ranks_and_tag("mine", [0, 1], 2)
    assert c10d._find_or_create_pg_by_ranks_and_tag("mine", [0, 1], 2) is tagged
    assert c10d._get_group_tag(tagged) == "mine"
    assert c10d._resolve_process_group(tagged.group_name) is tagged
    dist.destroy_process_group(tagged)
    with pytest.raises(RuntimeError, match="Could not resolve the process group"):
        c10d._resolve_process_group("mine")
    reverse = dist.new_group([1, 0], sort_ranks=False)
    assert dist.get_group_rank(reverse, 0) == 1 and dist.get_global_rank(reverse, 0) == 1
    y = torch.tensor([float(rank)])
    dist.broadcast(y, group=reverse, group_src=0)
    assert y.item() == 1.0
    c._verify_params_across_processes(dist.group.WORLD, [torch.ones(2)])
    with pytest.raises(RuntimeError, match="appears not to match sizes of the same param in"):
        c._verify_params_across_processes(dist.group.WORLD, [torch.ones(2 + rank)])
    values = [torch.arange(3.0) + 5 * rank, torch.arange(2) + rank, torch.ones(1) * rank]
    c._broadcast_coalesced(dist.group.WORLD, values, 8, 1)
    assert [v.tolist() for v in values] == [[5.0, 6.0, 7.0], [1, 2], [1.0]]


def test_groups_of_some(processes):
    processes(groups_of_some)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: dist.new_group([0, 0]), ValueError, r"must not contain duplicate entries, got \[0, 0"),
    (lambda: dist.new_group([0, 1]), ValueError, "should be less or equal to the world size"),
    (lambda: dist.new_group([0], backend="of_nobody"), AssertionError,
     "Unknown backend type of_nobody"),
    (lambda: dist.new_group([0], backend="nccl"), RuntimeError, "doesn't have NCCL built in"),
    (lambda: dist.new_group([0], timeout=3), TypeError, "of type datetime.timedelta, got 3"),
    (lambda: dist.new_subgroups(0), ValueError, r"'group_size' \(0\) must be positive"),
    (lambda: dist.new_subgroups(2), ValueError, r"\(2\) must not exceed the world size \(1\)"),
    (lambda: dist.new_subgroups_by_enumeration([]), ValueError, "cannot be empty"),
    (lambda: dist.shrink_group([]), ValueError, "ranks_to_exclude cannot be empty. To shrink"),
    (lambda: dist.shrink_group([0]), ValueError, "Cannot shrink a process group with size 1"),
    (lambda: dist.get_rank(3), ValueError, "Group 3 is not registered"),
    (lambda: dist.get_global_rank(3, 0), ValueError, "Group 3 is not registered"),
    (lambda: dist.get_backend(3), ValueError, "Process group 3 is not initialized in the world"),
    (lambda: dist.get_backend_config(-100), ValueError, "Invalid process group specified"),
    (lambda: dist.get_process_group_ranks(3), KeyError, "3"),
    (lambda: dist.destroy_process_group(3), ValueError, "Invalid process group specified"),
    (lambda: c10d._abort_process_group(3), ValueError, "or has been destroyed"),
    (lambda: dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1),
     ValueError, "trying to initialize the default process group twice!"),
])
def test_refusals_of_a_group(alone, call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_an_empty_url_is_not_the_default():
    with pytest.raises(RuntimeError, match="No rendezvous handler for ://"):
        dist.init_process_group("gloo", init_method="", rank=0, world_size=1)


def test_names_counts_and_places(alone, monkeypatch):
    world, count = dist.group.WORLD, dist.get_pg_count()
    assert world.group_desc == "default_pg"
    named, plain = dist.new_group([0], group_desc="mine"), dist.new_group([0])
    assert named.group_desc == "mine" and plain.group_desc == "undefined"
    assert int(plain.group_name) == int(named.group_name) + 1 == int(world.group_name) + 2
    assert dist.get_pg_count() == count + 2
    hashed = dist.new_group([0], use_local_synchronization=True)
    assert len(hashed.group_name) == 40
    assert dist.get_group_rank(world, 7) == dist.get_global_rank(world, 7) == 7
    for call, kind in ((dist.get_group_rank, "Global"), (dist.get_global_rank, "Group")):
        with pytest.raises(ValueError, match=f"{kind} rank 7 is not part of group"):
            call(plain, 7)
    dist.destroy_process_group(plain)
    with pytest.raises(ValueError, match="Invalid process group specified"):
        dist.destroy_process_group(plain)
    assert dist.destroy_process_group(dist.GroupMember.NON_GROUP_MEMBER) is None
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert dist.get_node_local_rank("4") == 4
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert dist.get_node_local_rank(5) == 3
