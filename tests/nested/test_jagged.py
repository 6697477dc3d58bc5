"""Calls with nested tensors of layout jagged: the op runs on the values, or is refused."""
import pytest

import flambeau as torch
from flambeau import nested

A, B = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(4, 3) - 5


@pytest.fixture
def jagged():
    return nested.nested_tensor([A, B], layout=torch.jagged)


def parts(result, function):
    assert result.is_nested
    for found, part in zip(result.unbind(), (A, B)):
        torch.testing.assert_close(found, function(part))


@pytest.mark.parametrize("function", [
    torch.sin, torch.relu, lambda x: x * 2, lambda x: 1 - x, lambda x: x.double(),
    lambda x: x.clamp(min=0), lambda x: torch.zeros_like(x), lambda x: x > 1])
def test_elements_alone(jagged, function):
    parts(function(jagged), function)
    assert function(jagged).shape == jagged.shape


def test_two_of_the_same_parts(jagged):
    parts(jagged * jagged + jagged, lambda x: x * x + x)
    other = nested.nested_tensor([A, A], layout=torch.jagged)
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add"):
        jagged + other


def test_dimensions_count_without_that_of_the_parts(jagged):
    parts(jagged.softmax(-1), lambda x: x.softmax(-1))
    parts(jagged.transpose(1, 2), lambda x: x.t())
    parts(jagged.unsqueeze(-1), lambda x: x.unsqueeze(-1))
    parts(torch.nn.functional.layer_norm(jagged, (3,)),
          lambda x: torch.nn.functional.layer_norm(x, (3,)))


def test_what_varied_and_is_summed_is_a_dimension_like_others(jagged):
    found = jagged.sum(1)
    assert not found.is_nested
    torch.testing.assert_close(found, torch.stack([A.sum(0), B.sum(0)]))
    torch.testing.assert_close(jagged.sum(), A.sum() + B.sum())


def test_parts_stand_side_by_side(jagged):
    parts(torch.cat([jagged, jagged], -1), lambda x: torch.cat([x, x], -1))
    assert torch.equal(jagged.select(0, 1), B)


@pytest.mark.parametrize("call, error, message", [
    (lambda x: torch.cat([x, x]), RuntimeError, r"cat\(\): not supported .* on dim=0"),
    (lambda x: torch.cat([x, x], 1), RuntimeError, r"cat\(\): not supported .* on ragged dim"),
    (lambda x: x.permute(1, 0, 2), ValueError, "Permute is not supported on the batch dimension"),
    (lambda x: x.sort(), NotImplementedError, "aten.sort.default"),
    (lambda x: torch.linalg.det(x), NotImplementedError, "linalg_det|aten::det|aten::_linalg_det"),
    (lambda x: x.is_same_size(A), RuntimeError, "Expected both self and other to be nested")])
def test_refusals(jagged, call, error, message):
    with pytest.raises(error, match=message):
        call(jagged)


def test_flatten_has_defaults():
    """As after attention with several heads."""
    x = nested.nested_tensor([torch.arange(16.0).reshape(2, 8), torch.ones(3, 8)],
                             layout=torch.jagged)
    heads = x.unflatten(-1, [2, 4])
    for flat in (heads.flatten(-2), heads.flatten(2), heads.transpose(1, 2).transpose(1, 2
                 ).flatten(start_dim=-2)):
        torch.testing.assert_close(flat.values(), x.values())
    with pytest.raises(RuntimeError, match="not supported for NestedTensor on dim=0"):
        heads.flatten()
    with pytest.raises(RuntimeError, match="not supported for NestedTensor on ragged dim"):
        heads.flatten(1, 2)


def test_contiguous_closes_gaps():
    x = torch.arange(12.0).view(2, 6)
    gaps = nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([3, 2]), layout=torch.jagged)
    closed = gaps.contiguous()
    assert not gaps.is_contiguous() and closed.is_contiguous() and closed.lengths() is None
    assert closed.values().tolist() == [0, 1, 2, 7, 8] and closed.offsets().tolist() == [0, 3, 5]


def test_parts_expand_but_for_the_dimension_that_varies():
    x = nested.nested_tensor([A[:, :1], B[:, :1]], layout=torch.jagged)
    for sizes in ((2, -1, 3), (2, x.size(1), 3), (-1, -1, 3)):
        y = x.expand(*sizes)
        assert [p.shape for p in y.unbind()] == [(2, 3), (4, 3)] and y.shape[1] is x.shape[1]
    torch.testing.assert_close(y.unbind()[1], B[:, :1].expand(4, 3))
    with pytest.raises(RuntimeError, match="cannot expand shape"):
        x.expand(3, -1, 3)


def test_lengths_that_vary_are_sizes():
    """`x.size(1)` of a nested tensor stands where a call wants an int."""
    x = nested.nested_tensor([A, B], layout=torch.jagged)
    for y in (x.view(2, x.size(1), 3, 1), x.reshape(x.shape[0], x.shape[1], 3, 1),
              x.unsqueeze(-1).expand(2, x.size(1), 3, 1)):
        assert y.shape == (2, x.size(1), 3, 1) and y.unbind()[1].shape == (4, 3, 1)


def test_dimensions_count_in_the_values():
    """Results lie as the op leaves the values."""
    x = nested.nested_tensor([A, B], layout=torch.jagged)
    turned = x.transpose(1, 2)
    assert not turned.is_contiguous() and turned._ragged_idx == 2
    assert turned.contiguous().is_contiguous() and turned.contiguous()._ragged_idx == 2
    assert x.unsqueeze(1)._ragged_idx == 2 and x.unsqueeze(1).squeeze(1)._ragged_idx == 1
    piece = x.narrow(-1, 1, 2)
    assert piece.values().data_ptr() == x.values().data_ptr() + 4 and not piece.is_contiguous()
    piece.unbind()[0].fill_(9)
    assert (x.unbind()[0][:, 1:] == 9).all()
