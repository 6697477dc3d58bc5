"""What public calls do with nested tensors: elements alone, part by part, or refused."""
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
    (lambda x: x.sort(), NotImplementedError, "aten::sort"),
    (lambda x: torch.linalg.det(x), NotImplementedError, "linalg_det|aten::det|aten::_linalg_det"),
    (lambda x: x.is_same_size(A), RuntimeError, "Expected both self and other to be nested")])
def test_refusals(jagged, call, error, message):
    with pytest.raises(error, match=message):
        call(jagged)
