"""Which nodes compute, and whose collectives they are."""
import pytest

import flambeau as torch
import flambeau.distributed
from flambeau._inductor.fx_passes.overlap_scheduling import get_group_name, is_compute_node

aten, c10d = torch.ops.aten, torch.ops._c10d_functional


def node(target, *args, **kwargs):
    graph = torch.fx.Graph()
    return graph.call_function(target, (graph.placeholder("x"), *args), kwargs)


@pytest.mark.parametrize("target, computes", [
    (aten.mm.default, True), (aten.bmm.default, True), (aten.addmm.default, True),
    (aten.convolution.default, True), (aten.relu.default, False), (aten.add.Tensor, False),
    (c10d.all_reduce.default, False)])
def test_products_and_convolutions_compute(target, computes):
    assert bool(is_compute_node(node(target))) is computes


def test_the_group_of_a_collective():
    assert get_group_name(node(c10d.all_reduce.default, "sum", "7")) == "7"
    assert get_group_name(node(c10d.all_gather_into_tensor.default, 2, group_name="5")) == "5"
