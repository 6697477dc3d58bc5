"""Orthogonal weights, and norms of weights."""
import pytest
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import parametrizations


class TestScripts(ScriptTests):
    topics = ("utils/parametrizations",)


@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_weights_are_orthogonal(how, shape):
    torch.manual_seed(0)
    layer = parametrizations.orthogonal(nn.Linear(*shape, dtype=torch.float64), orthogonal_map=how)
    w = layer.weight
    small = w @ w.mT if w.shape[0] <= w.shape[1] else w.mT @ w
    torch.testing.assert_close(small, torch.eye(3, dtype=torch.float64))
    layer(torch.ones(1, shape[0], dtype=torch.float64)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None


def test_the_largest_singular_value_is_1():
    torch.manual_seed(0)
    layer = parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=50)
    layer.weight                                        # goes on with its power iteration
    assert torch.linalg.matrix_norm(layer.weight, 2).item() == pytest.approx(1, rel=1e-3)


def test_length_and_direction():
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    original = layer.parametrizations.weight
    assert original.original0.shape == (2, 1) and original.original1.shape == (2, 3)
    with torch.no_grad():
        original.original0.fill_(5.0)
    torch.testing.assert_close(layer.weight.norm(dim=1), torch.full((2,), 5.0))
    layer.weight = torch.ones(2, 3)
    torch.testing.assert_close(original.original0, torch.full((2, 1), 3**0.5))


def test_states_of_the_hooks_can_be_loaded():
    with pytest.warns(FutureWarning, match="weight_norm"):
        old = nn.utils.weight_norm(nn.Linear(3, 2))
    new = parametrizations.weight_norm(nn.Linear(3, 2))
    new.load_state_dict(old.state_dict())
    torch.testing.assert_close(new.weight, old.weight)
