"""Process groups below the collectives: backends, messages in order, names and tags."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau._C import _distributed_c10d as c
from flambeau.distributed import distributed_c10d as c10d
from flambeau.testing._internal.distributed.fake_pg import FakeStore


def messages_in_order(rank):
    group = dist.group.WORLD
    if rank == 0:
        for value in (1.0, 2.0, 3.0):
            dist.send(torch.tensor([value]), 1)
        dist.send(torch.tensor([4.0]), 1, tag=7)
    else:
        first, second, third, tagged = (torch.zeros(1) for _ in range(4))
        works = [dist.irecv(t, 0) for t in (first, second, third)]
        works.append(group.recv([tagged], 0, 7))
        for work in reversed(works):                # waited for in another order than they came
            assert work.wait() and work.is_completed() and work.source_rank() == 0
        assert [t.item() for t in (first, second, third, tagged)] == [1.0, 2.0, 3.0, 4.0]
    peers = group._get_backend("cpu").peers
    for _ in range(3):
        dist.all_reduce(torch.ones(2))
    assert not peers._boxes and not peers._waiting          # nothing is left behind
    store = dist.distributed_c10d._get_default_store()      # all have looked before any goes on
    store.set(f"looked {rank}", "1")
    store.wait(["looked 0", "looked 1"])


def forms_of_calls(rank):
    group = dist.group.WORLD
    x = torch.ones(2) * (rank + 1)
    y = x.clone()
    group.allreduce(y).wait()
    assert y.tolist() == [3.0, 3.0]
    y = x.clone()
    assert group.allreduce([y], dist.ReduceOp.MAX).wait() and y.tolist() == [2.0, 2.0]
    y = x.clone()
    assert group.broadcast(y, root=1).wait() and y.tolist() == [2.0, 2.0]
    found = [torch.empty(2), torch.empty(2)]
    group.allgather(found, x).wait()
    assert [f.tolist() for f in found] == [[1.0, 1.0], [2.0, 2.0]]
    group.gather([found] if rank == 0 else [], [x], dist.GatherOptions()).wait()
    part = torch.empty(1)
    group.reduce_scatter(part, [torch.tensor([1.0 + rank]), torch.tensor([5.0])]).wait()
    assert part.item() == (3.0 if rank == 0 else 10.0)
    rows = torch.empty(4)
    group.alltoall_base(rows, torch.arange(4.0) + 10 * rank, [], []).wait()
    assert rows.tolist() == ([0.0, 1.0, 10.0, 11.0] if rank == 0 else [2.0, 3.0, 12.0, 13.0])
    many = [torch.ones(1) for _ in range(300)]
    group.allreduce(many).wait()
    assert all(t.item() == 2 for t in many)
    group.barrier().wait()
    group.barrier(dist.BarrierOptions()).wait()


def collected_calls(rank):
    first, second = torch.ones(2), torch.ones(3) * rank
    with c10d._coalescing_manager(async_ops=True) as manager:
        assert dist.all_reduce(first) is None
        work = dist.all_reduce(second, async_op=True)
        with pytest.raises(ValueError, match="Illegal to call wait"):
            work.wait()
    manager.wait()
    assert first.tolist() == [2.0, 2.0] and second.tolist() == [1.0] * 3
    whole, part = torch.empty(4), torch.empty(2)
    with c10d._coalescing_manager():
        dist.all_gather_into_tensor(whole, torch.ones(2) * rank)
    with c10d._coalescing_manager():
        dist.reduce_scatter_tensor(part, torch.arange(4.0))
    assert whole.tolist() == [0.0, 0.0, 1.0, 1.0]
    assert part.tolist() == ([0.0, 2.0] if rank == 0 else [4.0, 6.0])
    assert not c10d._world.pg_coalesce_state


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


def compared_calls(rank):
    store = c10d._get_default_store()
    inner = dist.ProcessGroupGloo(dist.PrefixStore("inner", store), rank, 2)
    group = c10d._create_process_group_wrapper(inner, "helper", store, rank, 2)
    y = torch.ones(2)
    group.allreduce([y]).wait()
    assert y.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="Detected mismatch between collectives on ranks"):
        group.allreduce([torch.ones(2 + rank)])
    with pytest.raises(RuntimeError, match="OpType=BROADCAST"):
        group.allreduce(y) if rank else group.broadcast(y, 0)


@pytest.mark.parametrize("check", [messages_in_order, forms_of_calls, collected_calls,
                                   groups_of_some, compared_calls])
def test_two_processes(processes, check):
    processes(check)


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


def store_collectives(rank):
    store = c10d._get_default_store()
    shared = c._StoreCollectives(store, rank, 2)
    shared.barrier("first")
    assert shared.all_sum("sum", rank + 1) == 3
    assert shared.all_gather("all", str(rank)) == ["0", "1"]
    assert (shared.scatter_send("part", ["a", "b"]) if rank == 0
            else shared.scatter_recv("part")) == [b"a", b"b"][rank]
    with pytest.raises(RuntimeError, match="Key first has already been used"):
        shared.barrier("first")
    store.barrier("again", 2)


def test_collectives_through_a_store(processes):
    processes(store_collectives)


class Twice(c.Backend):
    """A backend of the user's: doubles instead of adding up."""

    def getBackendName(self):
        return "twice"

    def allreduce(self, tensors, opts=None):
        for tensor in tensors:
            tensor.mul_(2)
        return dist.Work(tensors)


def test_backends_of_users():
    dist.Backend.register_backend("twice", lambda store, rank, size, timeout: Twice(rank, size),
                                  devices=["cpu"])
    dist.init_process_group("twice", store=dist.HashStore(), rank=0, world_size=2)
    try:
        x = torch.ones(2)
        dist.all_reduce(x)
        assert x.tolist() == [2.0, 2.0] and dist.get_backend() == "twice"
        assert dist.group.WORLD._get_backend_name() == "twice"
        with pytest.raises(RuntimeError, match="Backend twice does not support broadcast"):
            dist.broadcast(x, 0)
        with pytest.raises(AssertionError, match="TWICE c10d backend already exist"):
            dist.Backend.register_backend("twice", Twice)
    finally:
        dist.destroy_process_group()


class Group(dist.ProcessGroup):
    """A group of the user's, which runs its collectives itself."""

    def getBackendName(self):
        return "own"

    def allreduce(self, tensors, opts=None):
        tensors[0].fill_(5)
        return dist.Work(tensors)


def test_groups_of_users():
    x = torch.ones(2)
    group = Group(0, 2)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [5.0, 5.0] and group.name() == "own" and group.size() == 2


def test_the_other_processes_can_be_imagined():
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    try:
        whole = torch.empty(8)
        dist.all_gather_into_tensor(whole, torch.arange(2.0))
        assert whole.tolist() == [0.0, 1.0] * 4 and dist.get_rank() == 1
        half = dist.new_group([0, 1])
        assert half.size() == 2 and dist.get_backend(half) == "fake"
        dist.barrier()
    finally:
        dist.destroy_process_group()


def test_what_is_known_of_groups(alone):
    world = c10d._world
    assert world.pg_config_info[0]["pg_desc"] == "default_pg" and list(c10d._pg_map) == [
        dist.group.WORLD]
    assert c10d._get_pg_config() == {
        "pg_name": world.pg_names[dist.group.WORLD], "pg_desc": "default_pg", "pg_size": 1,
        "backend_config": "cpu:gloo,cuda:gloo", "ranks": [0]}
    assert dist.group.WORLD.name() == "gloo" and dist.get_backend_config() == "cpu:gloo,cuda:gloo"
    assert isinstance(dist.ReduceOp.SUM, dist.ReduceOp)
    assert dist.ReduceOp(dist.ReduceOp.MAX) == dist.ReduceOp.MAX
    with pytest.raises(RuntimeError, match="Only PREMUL_SUM supports accessing factor"):
        dist.ReduceOp(dist.ReduceOp.MAX).factor
    with pytest.warns(FutureWarning, match="`torch.distributed.reduce_op` is deprecated"):
        assert dist.reduce_op.SUM == dist.ReduceOp.SUM
    assert dist.is_backend_available("cpu:gloo") and not dist.is_backend_available("nccl")
    with pytest.raises(ValueError, match="The custom backend string argument is invalid"):
        dist.BackendConfig("a:b:c")
    assert c._compute_bucket_assignment_by_size(
        [torch.empty(10), torch.empty(10), torch.empty(3)], [40, 80]) == ([[0], [1, 2]], [40, 80])


@pytest.mark.parametrize("call, error, text", [
    (lambda x: dist.broadcast(x), ValueError, "Must specify global_rank or group_rank"),
    (lambda x: dist.broadcast(x, 1, group_src=1), ValueError, "Can't specify both group_rank"),
    (lambda x: dist.gather(x), ValueError, "``gather_list`` must be specified on destination"),
    (lambda x: dist.P2POp(3, x, 0), ValueError, "Expected ``op`` to be of type"),
    (lambda x: dist.batch_isend_irecv([3]), ValueError, "Each op is expected to"),
    (lambda x: dist.new_group([3]), ValueError, "Rank 3 is out of range. Valid ranks are 0 to 0"),
    (lambda x: dist.new_subgroups_by_enumeration([[0], [0]]), ValueError, "appeared in both"),
    (lambda x: dist.split_group(), ValueError, "split_ranks cannot be None or empty"),
    (lambda x: dist.get_backend(-100), ValueError, "Invalid process group specified"),
    (lambda x: dist.get_group_rank(3, 1), ValueError, "Group 3 is not registered"),
    (lambda x: dist.group.WORLD._get_backend("meta"), RuntimeError, "No backend type associated"),
    (lambda x: dist.all_reduce(x, op=dist.ReduceOp.BAND), RuntimeError, "with non-integral dtype"),
])
def test_refusals(alone, call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(2))
