"""Stepping other tensors than the ones that an optimiser was made for."""
import copy

import pytest

import flambeau as torch
from flambeau.optim import swap_in_optimizer_params_and_state


@pytest.fixture
def stepped():
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5, momentum=0.5)
    w.grad = torch.ones(2)
    optimizer.step()
    return w, optimizer


def test_others_step_and_the_own_stay(stepped):
    w, optimizer = stepped
    other = torch.zeros(2, requires_grad=True)
    other.grad = torch.ones(2)
    state = copy.deepcopy(optimizer.state_dict())
    with swap_in_optimizer_params_and_state(optimizer, {"w": other}, state):
        optimizer.step()
        assert optimizer.state[other]["momentum_buffer"].tolist() == [1.5, 1.5]
    assert other.tolist() == [-0.75, -0.75]
    assert w.tolist() == [0.5, 0.5] and optimizer.param_groups[0]["params"][0] is w
    assert optimizer.state[w]["momentum_buffer"].tolist() == [1, 1]


def test_the_own_come_back_after_an_error(stepped):
    w, optimizer = stepped
    state = optimizer.state_dict()
    with pytest.raises(KeyError), swap_in_optimizer_params_and_state(
            optimizer, {"w": torch.zeros(2)}, state):
        raise KeyError
    assert optimizer.param_groups[0]["params"][0] is w


def test_further_tensors_are_left_alone(stepped):
    _, optimizer = stepped
    others = [torch.zeros(2, requires_grad=True) for _ in range(2)]
    with swap_in_optimizer_params_and_state(
            optimizer, dict(enumerate(others)), optimizer.state_dict()):
        assert [p is others[0] for p in optimizer.param_groups[0]["params"]] == [True]


@pytest.mark.parametrize("change, message", [
    (lambda saved: saved.pop("state"), "to be a dict mapping packed parameter ids to .* NoneType"),
    (lambda saved: saved.update(param_groups=5), "to be a list of param-group dicts, got int"),
    (lambda saved: saved["param_groups"].clear(), "a different number of parameter groups than"),
    (lambda saved: saved["param_groups"][0].pop("params"), "entries keyed by packed parameter ids"),
    (lambda saved: saved["param_groups"][0]["params"].append(1),
     "param group 0 has a different number of params than the live"),
    (lambda saved: saved["param_groups"][0].pop("lr"), r"Keys only in live: \['lr'\]"),
    (lambda saved: saved["state"].update(a={}), r"got extra keys \['a'\]"),
    (lambda saved: saved["state"].update({0: 5}), "state entries to be dictionaries"),
])
def test_a_state_has_to_be_that_of_such_an_optimizer(stepped, change, message):
    _, optimizer = stepped
    saved = copy.deepcopy(optimizer.state_dict())
    change(saved)
    with pytest.raises(RuntimeError, match=message), swap_in_optimizer_params_and_state(
            optimizer, {"w": torch.zeros(2, requires_grad=True)}, saved):
        pass


def test_an_optimizer_without_state_and_missing_tensors_are_refused(stepped):
    _, optimizer = stepped
    fresh = torch.optim.SGD([torch.ones(2)], momentum=0.5)
    for one, text in ((optimizer, "to match optimizer.param_groups ordering"),
                      (fresh, "requires initialized optimizer state")):
        with pytest.raises(RuntimeError, match=text), swap_in_optimizer_params_and_state(
                one, {}, optimizer.state_dict()):
            pass
