"""Messages between two processes, and collectives of objects."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist


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


def test_messages_to_oneself(alone):
    x = torch.ones(2)
    with pytest.raises(ValueError, match="Invalid destination rank"):
        dist.send(x, 0)
    with pytest.raises(ValueError, match="Invalid destination rank: 1"):
        dist.isend(x, 1)
    with pytest.raises(ValueError, match="Expected ``op`` to be of type"):
        dist.P2POp(print, x, 1)
    dist.barrier()
    dist.monitored_barrier()
SIZE = 3


def messages(rank):
    if rank == 0:
        dist.send(torch.tensor([7.0]), 1)
    elif rank == 1:
        y = torch.zeros(1)
        assert dist.recv(y, 0) == 0 and y.item() == 7.0
    y = torch.zeros(3)
    for work in dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.ones(3) * rank, (rank + 1) % SIZE),
            dist.P2POp(dist.irecv, y, (rank - 1) % SIZE)]):
        work.wait()
    assert y.tolist() == [(rank - 1) % SIZE] * 3
    dist.barrier()
    if rank:
        dist.send(torch.tensor([float(rank)]), 0)
    else:
        y = torch.zeros(1)
        assert sorted((dist.recv(y), y.item()) for _ in range(2)) == [(1, 1.0), (2, 2.0)]
    with pytest.raises(ValueError, match="should not be the same as the rank of the current"):
        dist.send(y, rank)


def objects_and_groups(rank):
    found = [None] * SIZE
    dist.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": i} for i in range(SIZE)]
    shared, mine = [rank, "a"], [None]
    dist.broadcast_object_list(shared, src=1)
    dist.scatter_object_list(mine, [0, 1, 4] if rank == 0 else None, src=0)
    assert shared == [1, "a"] and mine == [rank * rank]
    pair, single = dist.new_group([0, 1]), dist.new_group([1])
    assert (dist.get_rank(pair), dist.get_rank(single)) == [(0, -1), (1, 0), (-1, -1)][rank]
    if rank < 2:
        y = torch.ones(1) * (rank + 1)
        dist.all_reduce(y, group=pair)
        assert y.item() == 3.0 and dist.get_process_group_ranks(pair) == [0, 1]
    alone, every = dist.new_subgroups(1)
    assert dist.get_world_size(alone) == 1 and len(every) == SIZE
    dist.monitored_barrier()
    for call, error, message in (
            (lambda: dist.broadcast(torch.ones(1), 6), RuntimeError, "invalid root rank: 6"),
            (lambda: dist.all_gather([torch.ones(1)], torch.ones(1)), RuntimeError,
             r"expected length 3, got 1")):
        with pytest.raises(error, match=message):
            call()


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


@pytest.mark.parametrize("work", [messages, objects_and_groups])
def test_three_processes(work, processes):
    processes(work, size=SIZE)


def test_the_order_of_messages(processes):
    processes(messages_in_order)


def no_pickle():
    return lambda: 3


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda x: dist.send(x), ValueError, "Must specify global_rank or group_rank"),
    (lambda x: dist.send(x, group_dst=0), ValueError, "destination rank should not be the same"),
    (lambda x: dist.P2POp(dist.isend, 3, 0), TypeError, "parameter `tensor` of type torch.Tensor"),
    (lambda x: dist.P2POp(dist.send, x, 0), ValueError, "to be of type ``torch.distributed.isend"),
    (lambda x: dist.P2POp(dist.isend, x), ValueError, "Must specify global_rank or group_rank"),
    (lambda x: dist.P2POp(dist.isend, x, 0, group_peer=0), ValueError, "Can't specify both"),
    (lambda x: dist.batch_isend_irecv(dist.P2POp(dist.isend, x, 0)), ValueError,
     "Invalid ``p2p_op_list``"),
    (lambda x: dist.all_gather_object([], 3), IndexError, "list assignment index out of range"),
    (lambda x: dist.all_gather_object([None], no_pickle()), (AttributeError, TypeError),
     "[Cc]an't .*pickle"),
    (lambda x: dist.gather_object(3), ValueError, "must be specified on destination rank"),
    (lambda x: dist.gather_object(3, [None], 1), ValueError, "must NOT be specified on non-dest"),
    (lambda x: dist.scatter_object_list([None]), ValueError,
     "source rank must provide non-None scatter_object_input_list"),
    (lambda x: dist.scatter_object_list([], [3]), ValueError, "to be a list of size at least 1"),
    (lambda x: dist.scatter_object_list([None], [3, 4]), RuntimeError,
     "Incorrect input list size 2. Input list size should be 1, same as size of the process group"),
])
def test_refusals(alone, call, error, words):
    with pytest.raises(error, match=words):
        call(torch.ones(2))


def test_a_message_of_a_batch(alone):
    message = dist.P2POp(dist.isend, torch.ones(3), group_peer=0, tag=5)
    assert (message.peer, message.group_peer, message.tag) == (0, 0, 5)
    assert message.group is dist.group.WORLD
    assert repr(message) == ("P2POp(isend pg=0, group_src=0, group_dst=0,  torch.Size([3]), "
                             "torch.float32)")
