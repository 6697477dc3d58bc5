"""The base of the optimisers: groups, hooks, saving and loading, printing."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)


def parameter(*shape):
    return torch.nn.Parameter(torch.ones(*shape or (2,)))


def test_repr():
    optimizer = torch.optim.SGD([parameter()], lr=0.5)
    assert repr(optimizer) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n"
        "    foreach: None\n    fused: None\n    lr: 0.5\n    maximize: False\n    momentum: 0\n"
        "    nesterov: False\n    weight_decay: 0\n)")


def test_groups_have_their_own_options():
    a, b = parameter(), parameter()
    optimizer = torch.optim.SGD([{"params": a, "lr": 0.5}, {"params": [b]}], lr=0.1)
    a.grad, b.grad = torch.ones(2), torch.ones(2)
    optimizer.step()
    assert a.tolist() == [0.5, 0.5]
    assert b[0].item() == pytest.approx(0.9)


def test_named_parameters():
    p = parameter()
    optimizer = torch.optim.SGD([("weight", p)])
    assert optimizer.param_groups[0]["param_names"] == ["weight"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight"]
    with pytest.raises(ValueError, match="cannot add param group without names"):
        optimizer.add_param_group({"params": [parameter()]})
    with pytest.raises(ValueError, match="Some param names are missing"):
        torch.optim.SGD([("weight", p), parameter()])


@pytest.mark.parametrize("params, error, message", [
    ([], ValueError, "optimizer got an empty parameter list"),
    ([3], TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
    ([{"params": {1}}], TypeError, "optimizer parameters need to be organized in ordered"),
])
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        torch.optim.SGD(params)


def test_a_tensor_is_no_list_of_parameters():
    with pytest.raises(TypeError, match="params argument given to the optimizer should be an"):
        torch.optim.SGD(torch.ones(3))


def test_parameters_are_leaves_and_in_one_group():
    p = parameter()
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        torch.optim.SGD([p * 2])
    with pytest.raises(ValueError, match="some parameters appear in more than one"):
        torch.optim.SGD([{"params": [p]}, {"params": [p]}])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        torch.optim.SGD([p, p])
    with pytest.raises(TypeError, match="param_group must be a dict, but got <class 'list'>"):
        torch.optim.SGD([p]).add_param_group([parameter()])


def test_required_option():
    with pytest.raises(ValueError, match="didn't specify a value of required"):
        Optimizer([parameter()], {"lr": required})


def test_zero_grad():
    p = parameter()
    optimizer = torch.optim.SGD([p])
    p.grad = torch.ones(2)
    kept = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is kept and kept.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_closure_runs_with_gradients():
    p = parameter()
    optimizer = torch.optim.SGD([p], lr=0.25)

    def closure():
        assert torch.is_grad_enabled()
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 2.0
    assert p.tolist() == [0.5, 0.5]


def test_step_hooks():
    log = []
    optimizer = torch.optim.SGD([parameter()])
    handles = [
        register_optimizer_step_pre_hook(lambda o, a, k: log.append("global pre")),
        optimizer.register_step_pre_hook(lambda o, a, k: log.append("pre")),
        optimizer.register_step_post_hook(lambda o, a, k: log.append("post")),
        register_optimizer_step_post_hook(lambda o, a, k: log.append("global post")),
    ]
    optimizer.step()
    assert log == ["global pre", "pre", "post", "global post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(log) == 4


def test_pre_hook_changes_arguments():
    optimizer = torch.optim.SGD([parameter()])
    optimizer.register_step_pre_hook(lambda o, a, k: (a, {"closure": lambda: 7.0}))
    assert optimizer.step() == 7.0
    optimizer.register_step_pre_hook(lambda o, a, k: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        optimizer.step()


def test_state_dict_hooks():
    optimizer = torch.optim.SGD([parameter()])
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "extra": 1})
    optimizer.register_load_state_dict_pre_hook(
        lambda o, d: {k: v for k, v in d.items() if k != "extra"})
    seen = []
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append(o))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("pre"), prepend=True)
    state = optimizer.state_dict()
    assert state["extra"] == 1
    optimizer.load_state_dict(state)
    assert seen == ["pre", optimizer]


def test_load_state_dict_checks_groups():
    optimizer = torch.optim.SGD([parameter()])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})


def test_load_state_dict_casts_to_the_parameter():
    state = {"state": {0: {"step": torch.tensor(3.0), "exp_avg": torch.ones(2),
                           "exp_avg_sq": torch.ones(2)}}}
    p = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    optimizer = torch.optim.Adam([p])
    optimizer.load_state_dict({**state, "param_groups": optimizer.state_dict()["param_groups"]})
    assert optimizer.state[p]["exp_avg"].dtype is torch.float64
    assert optimizer.state[p]["step"].dtype is torch.float32


def test_old_states_are_completed():
    p = parameter()
    optimizer = torch.optim.Adam([p])
    optimizer.load_state_dict({
        "state": {0: {"step": 3, "exp_avg": torch.ones(2), "exp_avg_sq": torch.ones(2)}},
        "param_groups": [{"params": [0], "lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-8,
                          "weight_decay": 0}]})
    assert optimizer.param_groups[0]["maximize"] is False
    assert optimizer.state[p]["step"].item() == 3.0
    p.grad = torch.ones(2)
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 4.0


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_step_on(copied):
    p = parameter()
    optimizer = torch.optim.SGD([p], lr=0.5, momentum=0.9)
    p.grad = torch.ones(2)
    optimizer.step()
    other = copied(optimizer)
    q = other.param_groups[0]["params"][0]
    assert q is not p
    q.grad = torch.ones(2)
    other.step()
    assert q[0].item() == pytest.approx(1 - 0.5 - 0.95)


def test_step_of_the_base():
    with pytest.raises(NotImplementedError):
        Optimizer([parameter()], {}).step()


class Wrapper(Optimizer):
    """An optimiser around another, which never calls the base's `__init__`."""

    def __init__(self, inner):
        self.inner = inner

    param_groups = property(lambda self: self.inner.param_groups)
    state = property(lambda self: self.inner.state)

    def step(self, closure=None):
        return self.inner.step(closure)


def test_an_optimizer_without_the_base_init_steps():
    p = torch.ones(1, requires_grad=True)
    optimizer = Wrapper(torch.optim.SGD([p], lr=0.5))
    p.grad = torch.ones(1)
    optimizer.step()
    assert p.item() == 0.5
    p.grad = None
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)


def test_hooks_of_a_subclass_run_once():
    class Own(torch.optim.RMSprop):
        def step(self, closure=None):
            return super().step(closure)

    seen = []
    optimizer = Own([torch.ones(1)], lr=0.1)
    optimizer.register_step_post_hook(lambda *args: seen.append(args))
    optimizer.step()
    assert len(seen) <= 2           # the base is wrapped too once one of it has been made
    assert len(seen) >= 1


def test_the_gradient_decides_whether_a_wrong_switch_is_looked_at():
    p, unclear = torch.nn.Parameter(torch.ones(2)), torch.ones(2)
    torch.optim.SGD([p], lr=0.1).zero_grad(set_to_none=unclear)
    p.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch.optim.SGD([p], lr=0.1).zero_grad(set_to_none=unclear)
