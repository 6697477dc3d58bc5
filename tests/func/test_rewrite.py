"""`functionalize`: a function without visible writes."""
import pytest

import flambeau as torch
from flambeau.func import functionalize, grad, vmap


def doubled(x):
    y = x.clone()
    y[0].mul_(2)
    return y.view(-1)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_values_stay(remove):
    x = torch.arange(4.0).reshape(2, 2) + 1
    assert torch.equal(functionalize(doubled, remove=remove)(x), doubled(x))


def test_arguments_are_written_to():
    x = torch.ones(3)
    result = functionalize(lambda t: t.add_(1))(x)
    assert x.tolist() == [2, 2, 2] and result.tolist() == [2, 2, 2]


def test_inside_of_other_transforms():
    x = torch.tensor([1.0, 2.0])
    square = functionalize(lambda t: t.clone().mul_(t).sum())
    assert grad(square)(x).tolist() == [2, 4]
    assert vmap(square)(torch.stack([x, 2 * x])).tolist() == [5, 20]


def test_what_can_be_removed():
    with pytest.raises(RuntimeError, match="received invalid argument for remove=views"):
        functionalize(doubled, remove="views")(torch.ones(1))
