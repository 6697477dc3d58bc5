"""In-place writes and views: gradients, versions, and what is forbidden."""
import pytest

import flambeau
from flambeau.testing import assert_close


def leaf(*shape):
    return flambeau.rand(*shape, dtype=flambeau.float64).add(0.5).requires_grad_()


VIEWS = {
    "row": lambda x: x[1], "column": lambda x: x[:, 1], "transposed": lambda x: x.t(),
    "block": lambda x: x[1:, ::2], "flat": lambda x: x.view(-1), "diagonal": lambda x: x.diagonal(),
    "twice": lambda x: x.t()[1:].t()[0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_writing_to_a_view_changes_the_gradient_of_its_base(name):
    view, x = VIEWS[name], leaf(4, 4)
    factor = leaf(1)
    y = x * x
    view(y).mul_(factor)
    y.sum().backward()
    mask = flambeau.zeros(4, 4, dtype=flambeau.float64)
    view(mask).fill_(1)
    inside = x.detach() * mask
    outside = x.detach() * (1 - mask)
    assert_close(x.grad, 2 * outside + 2 * inside * factor.detach())
    assert_close(factor.grad, (inside ** 2).sum().reshape(1))


@pytest.mark.parametrize("name", VIEWS)
def test_writing_to_the_base_changes_the_gradient_of_a_view(name):
    view, x = VIEWS[name], leaf(4, 4)
    y = x * 1
    part = view(y)
    y.mul_(3)
    assert part.grad_fn is not None
    (part ** 2).sum().backward()
    mask = flambeau.zeros(4, 4, dtype=flambeau.float64)
    view(mask).fill_(1)
    assert_close(x.grad, 18 * x.detach() * mask)


def test_overwritten_parts_get_no_gradient():
    x, row = leaf(3, 3), leaf(3)
    y = x * 2
    y[1] = row
    y.sum().backward()
    assert x.grad[1].tolist() == [0.0] * 3 and x.grad[0].tolist() == [2.0] * 3
    assert row.grad.tolist() == [1.0] * 3


def test_second_order_through_a_write():
    assert flambeau.autograd.gradgradcheck(_written, (leaf(2, 3), leaf(3)))
    assert flambeau.autograd.gradcheck(_written, (leaf(2, 3), leaf(3)), check_forward_ad=True)


def _written(x, row):
    y = x * x
    y[0].mul_(row)
    return y.exp()


def test_versions_are_shared_by_views():
    x = flambeau.zeros(4)
    view, detached = x[1:3], x.detach()
    for n, write in enumerate((lambda: x.add_(1), lambda: view.zero_(),
                               lambda: detached.fill_(2)), 1):
        write()
        assert x._version == view._version == detached._version == n


def test_saved_tensors_must_not_change():
    x, other = leaf(3), flambeau.ones(3, dtype=flambeau.float64)
    y = (x * other).sum()
    other.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    z = x.exp()
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_what_is_not_saved_may_change():
    x = leaf(3)
    y = x + 1
    y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_leaves_are_protected():
    x = leaf(3)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        x[0].add_(1)
    with flambeau.no_grad():
        x.add_(1)
    assert x.is_leaf and x._version == 1


def test_data_and_detach():
    x = leaf(2)
    before = x._version
    x.data.zero_()
    assert x._version == before and x.tolist() == [0.0, 0.0]
    x.detach().fill_(1)
    assert x._version == before + 1


def test_node_names_of_writes():
    x = leaf(2, 2)
    y = x * 1
    y[0].mul_(2)
    assert y.grad_fn.name() == "CopySlices"
    y.add_(1)
    assert y.grad_fn.name() == "AddBackward0"
