"""Nodes that calls leave, and views that share version and history."""
import pytest

import flambeau as torch
from flambeau.core.autograd import recording
from flambeau.core.op import table


def test_edges_of_inputs():
    w, x = torch.ones(2, requires_grad=True), torch.ones(2)
    y = w * 2
    assert recording.edges_of((x, None, 3)) is None
    accumulator, none, node = recording.edges_of((w, x, y))
    assert accumulator is w and none is None and node.name() == "MulBackward0"


def test_columns():
    x = torch.arange(6.0).view(2, 3)
    assert recording.is_by_columns(x.T) and not recording.is_by_columns(x)
    assert not recording.is_by_columns(x[0])


def test_several_results_are_outputs_of_one_node():
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, indices = x.sort()
    assert values.grad_fn.name() == "SortBackward0" and indices.grad_fn is None
    first, second = x.view(3, 1).split([1, 2])
    assert first.grad_fn is not None and first.grad_fn.next_functions == \
        second.grad_fn.next_functions


def test_watchers_see_each_node():
    seen = []
    recording.node_watchers.append(lambda node: seen.append(node.name()))
    try:
        x = torch.ones(2, requires_grad=True)
        (x * 2).sin()
    finally:
        recording.node_watchers.clear()
    assert seen == ["MulBackward0", "SinBackward0"]


def test_a_view_shares_the_version():
    x = torch.zeros(2, 3)
    y = x.T[1:]
    assert y._base is x and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x.add_(1)
    assert y._version == x._version == 1 and y.eq(1).all()
    y.mul_(2)
    assert x._version == 2 and x.tolist() == [[1, 2, 2], [1, 2, 2]]


def test_views_of_complex_parts_are_replayed():
    """Strides on the base cannot say them: the view is made again by its calls."""
    z = torch.tensor([1 + 2j, 3 + 4j], requires_grad=True)
    base = z * 1
    part = torch.view_as_real(base)[1:]
    part.mul_(10)
    assert base.tolist() == [1 + 2j, 30 + 40j]
    base.real.sum().backward()
    assert z.grad.tolist() == [1, 10]


@pytest.mark.parametrize("name", ["exp", "mul", "cat", "sort"])
def test_nodes_have_the_class_of_their_op(name):
    assert table[name].Backward.op is table[name]
