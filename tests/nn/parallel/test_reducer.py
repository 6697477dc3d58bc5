"""Gradients that are shared, bucket by bucket, while the backward pass runs."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.futures import Future
from flambeau.nn.parallel._reducer import GradBucket, Reducer, assign_buckets


def parameters(*sizes):
    return [nn.Parameter(torch.ones(n)) for n in sizes]


def reducer_of(params, buckets, group, **options):
    return Reducer(params, buckets, [], group, **options)


def test_a_bucket_is_its_gradients_in_a_row():
    params = parameters(2, 1)
    params[0].grad = torch.tensor([1.0, 2.0])
    bucket = GradBucket(params, index=3, is_last=False)
    assert bucket.buffer().tolist() == [1, 2, 0] and bucket.index() == 3 and not bucket.is_last()
    assert [g.tolist() for g in bucket.gradients()] == [[1, 2], [0]]
    bucket.set_buffer(torch.tensor([4.0, 5.0, 6.0]))
    assert [g.tolist() for g in bucket.gradients()] == [[4, 5], [6]]
    assert GradBucket(params, zeros=True).buffer().tolist() == [0, 0, 0]
    assert bucket.parameters() == params


@pytest.mark.parametrize("first, cap, wanted", [
    (1000, 1000, [[3, 2, 1, 0]]), (4, 1000, [[3], [2, 1, 0]]), (8, 8, [[3, 2], [1], [0]])])
def test_buckets_fill_from_the_end(first, cap, wanted):
    assert assign_buckets(parameters(2, 2, 1, 1), [False] * 4, first, cap) == wanted


def test_types_and_sparse_gradients_do_not_share_buckets():
    params = [*parameters(1, 1), nn.Parameter(torch.ones(1).double())]
    assert assign_buckets(params, [False] * 3, 99, 99) == [[2], [1, 0]]
    assert assign_buckets(parameters(1, 1, 1), [False, True, False], 99, 99) == [[2], [1], [0]]


def test_hooks_get_buckets_in_order(group):
    params, seen = parameters(1, 2, 1), []
    reducer = reducer_of(params, [[2], [1, 0]], group)

    def hook(state, bucket):
        seen.append((state, bucket.index(), bucket.is_last()))
        future = Future()
        future.set_result(bucket.buffer() * 10)
        return future

    reducer.hook = "state", hook
    reducer.prepare_for_forward()
    loss = sum((p * 2).sum() for p in params)
    reducer.prepare_for_backward([loss])
    loss.backward()
    assert seen == [("state", 0, False), ("state", 1, True)]
    assert [p.grad.tolist() for p in params] == [[20], [20, 20], [20]]
    assert sorted(reducer.ready) == [0, 1, 2]


def test_a_hook_gives_a_future(group):
    (p,) = params = parameters(1)
    reducer = reducer_of(params, [[0]], group)
    reducer.hook = None, lambda state, bucket: bucket.buffer()
    loss = p.sum()
    reducer.prepare_for_backward([loss])
    with pytest.raises(RuntimeError, match=r"must return a torch.futures.Future object"):
        loss.backward()


def test_parameters_without_gradient(group):
    params = parameters(1, 1)
    reducer = reducer_of(params, [[1, 0]], group)
    for _ in range(2):
        loss = params[1].sum()
        if reducer.iterations:
            with pytest.raises(RuntimeError, match="did not receive grad for rank 0: 0"):
                reducer.prepare_for_forward()
            break
        reducer.prepare_for_forward()
        reducer.prepare_for_backward([loss])
        loss.backward()
    finding = reducer_of(params, [[1, 0]], group, find_unused_parameters=True)
    for _ in range(2):
        finding.prepare_for_forward()
        loss = params[1].sum()
        finding.prepare_for_backward([loss])
        loss.backward()
    assert params[0].grad is None and params[1].grad.item() == 3
