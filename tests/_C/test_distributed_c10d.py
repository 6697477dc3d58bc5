"""Process groups, buckets of gradients and stores as `torch._C._distributed_c10d` has them."""

import pytest

import flambeau as torch
import flambeau.distributed
from flambeau._C import _distributed_c10d as c10d


@pytest.mark.parametrize("sizes, limits, expected", [
    ([10, 10, 10], [1 << 20], ([[0, 1, 2]], [1 << 20])),
    ([10, 10, 10], [40, 80], ([[0], [1, 2]], [40, 80])),
    ([10, 10, 10], [1], ([[0], [1], [2]], [1, 1, 1])),
])
def test_parameters_fill_buckets(sizes, limits, expected):
    tensors = [torch.empty(size) for size in sizes]
    assert c10d._compute_bucket_assignment_by_size(tensors, limits) == expected


def test_each_type_has_buckets_of_its_own():
    tensors = [torch.empty(10), torch.empty(10, dtype=torch.float64)] * 2
    buckets, _ = c10d._compute_bucket_assignment_by_size(tensors, [400])
    assert buckets == [[0, 2], [1, 3]]


def test_sparse_gradients_stand_alone():
    tensors = [torch.empty(10) for _ in range(3)]
    buckets, _ = c10d._compute_bucket_assignment_by_size(tensors, [400], [False, True, False])
    assert buckets == [[0, 2], [1]]


def test_types_of_errors_have_their_numbers():
    kinds = c10d.ErrorType
    assert [int(kind) for kind in (kinds.SUCCESS, kinds.TIMEOUT, kinds.COMM_ERROR,
                                   kinds.REMOTE_ERROR)] == [0, 1, 2, 3]


def test_work_of_a_future_ends_with_it():
    future = torch.futures.Future()
    work = c10d._create_work_from_future(future)
    assert not work.is_completed()
    future.set_result([torch.ones(2)])
    assert work.wait() and work.is_completed()


def test_compiled_code_may_take_what_is_under_way_only_on_request():
    assert not c10d._allow_inflight_collective_as_graph_input()
    c10d._set_allow_inflight_collective_as_graph_input(True)
    try:
        assert c10d._allow_inflight_collective_as_graph_input()
    finally:
        c10d._set_allow_inflight_collective_as_graph_input(False)
