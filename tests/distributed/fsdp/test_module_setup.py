"""Which modules and parameters a wrapper takes, and their names, values and norms."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.fsdp import _module_setup as setup


def network():
    return nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))


def test_what_is_left_alone():
    model = network()
    modules, params = setup._ignored([model[1]], [model[0].bias])
    assert modules == {model[1], model[1][0], model[1][1]}
    assert params == {*model[1].parameters(), model[0].bias}
    assert setup._ignored(None, None) == (set(), set())
    with pytest.raises(TypeError, match="expect modules or parameters, got <class 'int'>"):
        setup._ignored(None, [3])


def test_modules_without_values_are_given_some():
    with torch.device("meta"):
        model = network()
    seen = []
    setup._materialize(model, lambda m: seen.append(m), {model[1][0]})
    assert seen == [model[0], model[1][1]]              # one by one, without those ignored
    seen.clear()
    setup._materialize(network(), seen.append, set())
    assert seen == []


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_norms_are_those_of_one_vector(norm_type):
    params = [nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.zeros(3)),
              nn.Parameter(torch.zeros(1))]
    params[0].grad, params[1].grad = torch.tensor([[1.0, -2], [3, 4]]), torch.tensor([-7.0, 1, 1])
    whole = torch.cat([params[0].grad.flatten(), params[1].grad])
    found = setup._get_grad_norm(params, norm_type, torch.zeros(()), torch.device("cpu"))
    torch.testing.assert_close(found, torch.linalg.vector_norm(whole, norm_type))
    assert setup._get_grad_norm(params[2:], norm_type, torch.zeros(()), torch.device("cpu")) == 0


def test_one_name_each():
    model = network()
    model[1][0].weight = model[0].weight
    names = setup._get_param_to_fqn(model)
    assert list(names.values()) == ["0.weight", "0.bias", "1.0.bias", "1.1.weight", "1.1.bias"]
    assert setup._get_fqn_to_param(model) == {name: p for p, name in names.items()}
