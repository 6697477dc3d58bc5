"""Collectives in graphs, and the tensors that several become one in."""
import pytest

import flambeau as torch
import flambeau.distributed
from flambeau._inductor.fx_passes import bucketing

c10d = torch.ops._c10d_functional


def node(target, *args):
    graph = torch.fx.Graph()
    return graph.call_function(target, (graph.placeholder("x"), *args))


KINDS = {"is_all_gather_into_tensor": node(c10d.all_gather_into_tensor.default, 2, "0"),
         "is_reduce_scatter_tensor": node(c10d.reduce_scatter_tensor.default, "sum", 2, "0"),
         "is_all_reduce_tensor": node(c10d.all_reduce.default, "sum", "0"),
         "is_all_to_all_tensor": node(c10d.all_to_all_single.default, [1], [1], "0"),
         "is_wait_tensor": node(c10d.wait_tensor.default),
         "none": node(torch.ops.aten.relu.default)}


@pytest.mark.parametrize("name", [name for name in KINDS if name != "none"])
def test_which_nodes_are_collectives(name):
    found = {kind for kind, n in KINDS.items() if getattr(bucketing, name)(n)}
    assert found == {name}
    assert not getattr(bucketing, name)(torch.fx.Graph().placeholder("x"))


def test_tensors_side_by_side_for_each_process():
    a, b = torch.arange(4.0).reshape(4, 1), torch.arange(8.0).reshape(4, 2) + 10
    found = torch.ops.bucketing._pre_bucket_reduce_scatter([a, b], 2)
    assert found.tolist() == [0, 1, 10, 11, 12, 13, 2, 3, 14, 15, 16, 17]


def test_room_for_what_all_processes_give():
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([[3], [4], [5], [6]])
    number = bucketing._ALL_DTYPES.index
    found = torch.ops.bucketing._pre_bucket_all_gather(
        [a, b], 3, torch.uint8, [number(torch.float32), number(torch.float16)], 1)
    assert found.shape == (48,) and found.dtype is torch.uint8
    assert found[16:24].view(torch.float32).tolist() == [1, 2]
    assert found[24:32].view(torch.float16).tolist() == [3, 4, 5, 6]
