"""Each process draws the random numbers of its piece."""
import warnings

import pytest
from tensor_cases import P, R, imagined, put

import flambeau as torch
from flambeau.distributed.tensor import Shard


@pytest.fixture
def mesh():
    with imagined(2) as found, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield found


@pytest.mark.parametrize("draw", [
    lambda x: x.normal_(), lambda x: x.uniform_(2, 3), lambda x: x.bernoulli_(0.5),
    torch.nn.init.normal_])
@pytest.mark.parametrize("cut", [Shard(0), Shard(1), R])
def test_placements_stay(mesh, draw, cut):
    x = put(torch.full((4, 4), 9.0), mesh, cut)
    assert draw(x) is x and x.placements == (cut,)
    assert (x.to_local() != 9).all()


def test_numbers_are_those_of_the_generator(mesh):
    x = put(torch.zeros(4, 3), mesh, Shard(0))
    torch.manual_seed(5)
    expected = torch.zeros(2, 3).uniform_(-1, 1)
    torch.manual_seed(5)
    assert x.uniform_(-1, 1).to_local().shape == expected.shape
    torch.manual_seed(5)
    made = torch.rand_like(x)
    assert made.placements == (Shard(0),) and made.shape == (4, 3)


def test_terms_cannot_be_drawn(mesh):
    with pytest.raises(RuntimeError, match="in-place operations that require placement changes"):
        put(torch.ones(4), mesh, P).normal_()
