"""Fills: the bounds they keep, the generator they draw from, and what vmap makes of them."""
import pytest

import flambeau as torch
from flambeau.func import vmap


@pytest.mark.parametrize("fill,low,high", [
    (lambda x: x.uniform_(-1, 2), -1, 2), (lambda x: x.random_(3, 7), 3, 6),
    (lambda x: x.exponential_(2), 0, float("inf")), (lambda x: x.geometric_(0.5), 1, float("inf")),
    (lambda x: x.log_normal_(), 0, float("inf")), (lambda x: x.bernoulli_(0.5), 0, 1)])
def test_bounds(fill, low, high):
    x = fill(torch.empty(1000))
    assert x.min() >= low and x.max() <= high


def test_a_generator_of_ones_own():
    first, second = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    assert torch.equal(torch.rand(5, generator=first), torch.rand(5, generator=second))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_fill_under_vmap():
    x = torch.zeros(4, 3)
    assert (vmap(lambda s: torch.rand_like(s), randomness="same")(x).diff(dim=0) == 0).all()
    assert vmap(lambda s: torch.rand_like(s), randomness="different")(x).unique().numel() == 12


@pytest.mark.parametrize("call,said", [
    (lambda x: x.uniform_(1, 0), "uniform_ expects to return a"), (lambda x: x.normal_(0, -1),
                                                                    "std >= 0"),
    (lambda x: x.exponential_(-1), "lambda"), (lambda x: x.geometric_(2), "0, 1"),
    (lambda x: x.random_(5, 5), "from")])
def test_bounds_that_make_no_sense(call, said):
    with pytest.raises(RuntimeError, match=said):
        call(torch.empty(2))
