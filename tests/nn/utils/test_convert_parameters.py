"""Parameters as one vector."""
import pytest
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn


class TestScripts(ScriptTests):
    topics = ("utils/convert_parameters",)


def test_there_and_back():
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    vector = nn.utils.parameters_to_vector(one.parameters())
    assert torch.equal(vector, torch.cat([one.weight.reshape(-1), one.bias]))
    nn.utils.vector_to_parameters(vector, other.parameters())
    assert torch.equal(other.weight, one.weight) and torch.equal(other.bias, one.bias)


def test_gradients_go_through():
    layer = nn.Linear(2, 1)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    (vector * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 2]] and layer.bias.grad.tolist() == [3]


@pytest.mark.parametrize("call", [
    lambda: nn.utils.vector_to_parameters([1.0], nn.Linear(1, 1).parameters()),
    lambda: nn.utils.vector_to_parameters(torch.ones(1), nn.Linear(2, 2).parameters())])
def test_refusals(call):
    with pytest.raises((TypeError, RuntimeError)):
        call()
