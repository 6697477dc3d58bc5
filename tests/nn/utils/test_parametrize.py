"""Parameters that are computed from others."""
import copy
import pickle

import pytest
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import parametrize


class TestScripts(ScriptTests):
    topics = ("utils/parametrize",)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


@pytest.fixture
def symmetric():
    torch.manual_seed(0)
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


def test_the_tensor_is_computed(symmetric):
    assert torch.equal(symmetric.weight, symmetric.weight.mT)
    assert list(symmetric.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert type(symmetric).__name__ == "ParametrizedLinear" and isinstance(symmetric, nn.Linear)
    assert parametrize.is_parametrized(symmetric, "weight")
    assert not parametrize.is_parametrized(symmetric, "bias")
    symmetric(torch.ones(1, 3)).sum().backward()
    assert symmetric.parametrizations.weight.original.grad is not None


def test_values_are_set_through_the_inverse(symmetric):
    value = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    symmetric.weight = value
    assert torch.equal(symmetric.weight, value)
    assert torch.equal(symmetric.parametrizations.weight.original, value.triu())
    parametrize.register_parametrization(symmetric, "weight", Doubled())
    with pytest.raises(RuntimeError, match="does not implement right_inverse"):
        symmetric.weight = value


@pytest.mark.parametrize("leave", [True, False])
def test_taken_away_again(symmetric, leave):
    weight = symmetric.weight.detach().clone()
    original = symmetric.parametrizations.weight.original.detach().clone()
    parametrize.remove_parametrizations(symmetric, "weight", leave_parametrized=leave)
    assert type(symmetric) is nn.Linear and isinstance(symmetric.weight, nn.Parameter)
    assert torch.equal(symmetric.weight, weight if leave else original)


def test_computed_once_while_cached(symmetric):
    assert symmetric.weight is not symmetric.weight
    with parametrize.cached():
        assert symmetric.weight is symmetric.weight
    assert symmetric.weight is not symmetric.weight


def test_copies_have_weights_of_their_own(symmetric):
    other = copy.deepcopy(symmetric)
    other.weight = torch.eye(3)
    assert torch.equal(other.weight, torch.eye(3))
    assert not torch.equal(symmetric.weight, torch.eye(3))
    with pytest.raises(RuntimeError, match="Serialization of parametrized modules is only"):
        pickle.dumps(symmetric)
