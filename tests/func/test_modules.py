"""Modules as functions of their parameters."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.func import functional_call, replace_all_batch_norm_modules_, stack_module_state


def test_a_call_with_other_parameters_leaves_the_own():
    layer, x = nn.Linear(2, 1), torch.ones(1, 2)
    before = layer.weight.detach().clone()
    other = {"weight": torch.tensor([[2.0, 3.0]]), "bias": torch.tensor([1.0])}
    assert functional_call(layer, other, (x,)).item() == 6
    assert functional_call(layer, [{"weight": other["weight"]}, {"bias": other["bias"]}], x) == 6
    assert torch.equal(layer.weight, before)


def test_gradients_go_to_what_was_given():
    layer, weight = nn.Linear(2, 1, bias=False), torch.ones(1, 2, requires_grad=True)
    functional_call(layer, {"weight": weight}, (torch.tensor([[3.0, 4.0]]),)).sum().backward()
    assert weight.grad.tolist() == [[3, 4]] and layer.weight.grad is None


def test_buffers_are_written_where_they_were_given():
    norm = nn.BatchNorm1d(2, momentum=0.5)
    mean = torch.zeros(2)
    functional_call(norm, {"running_mean": mean}, (torch.tensor([[1.0, 2.0], [3.0, 4.0]]),))
    assert mean.tolist() == [1, 1.5] and norm.running_mean.tolist() == [0, 0]


def test_tied_weights_go_together():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(1))
            self.b = self.a

        def forward(self, x):
            return x * self.a + self.b

    x = torch.ones(1)
    assert functional_call(Tied(), {"a": torch.tensor([5.0])}, (x,)).item() == 10
    assert functional_call(Tied(), {"a": torch.tensor([5.0])}, (x,), tie_weights=False).item() == 6
    with pytest.raises(ValueError, match="got multiple values for keys"):
        functional_call(Tied(), {"a": torch.zeros(1), "b": torch.zeros(1)}, (x,))


@pytest.mark.parametrize("given, error, message", [
    (5, ValueError, "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts"),
    ([{}, 5], ValueError, "Expected all elements of parameter_and_buffer_dicts to be dict"),
    ([{"bias": 1}, {"bias": 2}], ValueError, "appeared in multiple dictionaries"),
])
def test_refusals(given, error, message):
    with pytest.raises(error, match=message):
        functional_call(nn.Linear(1, 1), given, (torch.ones(1, 1),))


def test_strict_calls_want_all_and_nothing_else():
    layer, x = nn.Linear(1, 1), torch.ones(1, 1)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'bias'"):
        functional_call(layer, {"weight": torch.ones(1, 1)}, (x,), strict=True)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'z'"):
        functional_call(layer, {**dict(layer.named_parameters()), "z": x}, (x,), strict=True)


def test_states_are_stacked():
    models = [nn.BatchNorm1d(2) for _ in range(3)]
    models[1].running_mean += 4
    params, buffers = stack_module_state(models)
    assert params["weight"].shape == (3, 2) and params["weight"].requires_grad
    assert buffers["running_mean"].tolist() == [[0, 0], [4, 4], [0, 0]]
    assert not buffers["running_mean"].requires_grad


@pytest.mark.parametrize("models, message", [
    ([], "Expected at least one model, got 0"),
    ([nn.Linear(1, 1), nn.Linear(1, 1).eval()], "to have the same training/eval mode"),
    ([nn.Linear(1, 1), nn.Identity()], "to be of the same class"),
])
def test_states_that_do_not_go_together(models, message):
    with pytest.raises(RuntimeError, match=message):
        stack_module_state(models)


def test_batch_norm_without_statistics():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm2d(3)), nn.InstanceNorm1d(2))
    assert replace_all_batch_norm_modules_(net) is net
    assert net[0].running_mean is None and not net[1][0].track_running_stats
    assert list(net[0].state_dict()) == ["weight", "bias"]
