"""Every optimiser walks where PyTorch's walks; variants of a rule agree with each other."""

import copy
import json
import warnings
from pathlib import Path

import pytest
from optim_cases import COMPLEX, OPTIMIZERS, loss_of, numbers, optimizer_cases, start, trajectory

import flambeau as torch
from flambeau.optim.rule import RuleOptimizer

RECORDED = json.loads(
    (Path(__file__).parents[1] / "data" / "optim_trajectories.json").read_text())
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4}


@pytest.mark.parametrize("key, name, options, dtype", list(optimizer_cases()))
def test_trajectory(key, name, options, dtype):
    actual = trajectory(torch, name, options, dtype)
    rel = TOLERANCE[dtype]
    if name == "LBFGS" and dtype == "float32" and "line_search_fn" in options:
        rel = 1e-3          # losses are compared: where one is least, they say √eps of the place
    for mine, theirs in zip(actual, RECORDED[key], strict=True):
        assert mine == pytest.approx(theirs, rel=rel, abs=rel * 1e-2)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta",
                                  "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernel_agrees_with_the_rule(name, dtype, monkeypatch):
    for options in OPTIMIZERS[name]:
        by_kernel = trajectory(torch, name, options, dtype)
        with monkeypatch.context() as patch:
            patch.setattr(getattr(torch.optim, name), "kernel_dtypes", ())
            by_rule = trajectory(torch, name, options, dtype)
        for mine, theirs in zip(by_kernel, by_rule, strict=True):
            assert mine == pytest.approx(theirs, rel=TOLERANCE[dtype] / 100, abs=1e-7)


def test_kernel_counts_writes():
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)
    w.grad = torch.ones(3)
    optimizer.step()
    square = (w * w).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_large_and_strided_parameters(name):
    """What the kernels join, what they take alone, and what is not contiguous."""
    torch.manual_seed(0)
    shapes = [(200, 300), (7,), (3, 5), (0,)]
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}

    def run(kernels):
        torch.manual_seed(0)
        params = [torch.randn(shape).requires_grad_() for shape in shapes]
        params.append(torch.randn(4, 6).t().requires_grad_())
        optimizer = getattr(torch.optim, name)(params, **options)
        if not kernels:
            optimizer.kernel_dtypes = ()
        for _ in range(3):
            for p in params:
                p.grad = torch.randn(p.shape)
            optimizer.step()
        return params

    for mine, theirs in zip(run(True), run(False), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - {"LBFGS", "SparseAdam", "Muon"}))
def test_state_dict_resumes(name):
    """A copy that loads the state walks on as the original does."""

    def step(params, optimizer):
        optimizer.zero_grad()
        loss_of(params).backward()
        optimizer.step()

    for options in OPTIMIZERS[name]:
        params = start(torch, name, "float64")
        optimizer = getattr(torch.optim, name)(params, **options)
        for _ in range(3):
            step(params, optimizer)
        others = [p.detach().clone().requires_grad_() for p in params]
        copied = getattr(torch.optim, name)(others, **{**options, "lr": 7.0})
        copied.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for _ in range(3):
            step(params, optimizer)
            step(others, copied)
        for mine, theirs in zip(params, others, strict=True):
            # a 0-d float32 of the state, as NAdam's mu_product, loads as the parameter's dtype
            assert numbers(torch, mine) == pytest.approx(numbers(torch, theirs), rel=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adamax", "NAdam", "RAdam", "Adadelta", "RMSprop",
                                  "Adagrad", "ASGD"])
def test_differentiable_through_the_gradient(name):
    """The step's derivative in the gradient, against differences."""
    options = {"lr": 0.1, "differentiable": True, **({"momentum": 0.9} if name == "SGD" else {})}

    def two_steps(grad):
        p = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True).clone()
        optimizer = getattr(torch.optim, name)([p], **options)
        p.grad = grad
        optimizer.step()
        p.grad = 2 * grad
        optimizer.step()
        return p

    grad = torch.tensor([0.5, 0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(two_steps, (grad,))


def test_differentiable_through_the_learning_rate():
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    p = torch.tensor([1.0], dtype=torch.float64, requires_grad=True).clone()
    optimizer = torch.optim.SGD([p], lr=lr, differentiable=True)
    p.grad = torch.tensor([3.0], dtype=torch.float64)
    optimizer.step()
    p.sum().backward()
    assert lr.grad.item() == -3.0


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_is_a_pair_of_reals(name):
    if name == "LBFGS":
        pytest.skip("its closure sees the parameters themselves")
    options = {"lr": 0.1}
    z = torch.tensor([1 + 2j, -1 + 0.5j], dtype=torch.complex128, requires_grad=True)
    x = torch.view_as_real(z.detach().clone()).requires_grad_()
    one = getattr(torch.optim, name)([z], **options)
    other = getattr(torch.optim, name)([x], **options)
    for i in range(4):
        z.grad = torch.tensor([1 - 1j, 0.5 + 2j], dtype=torch.complex128) * (i + 1)
        x.grad = torch.view_as_real(z.grad)
        one.step()
        other.step()
    assert torch.allclose(torch.view_as_real(z.detach()), x.detach(), rtol=1e-12)


def test_lr_in_a_tensor():
    for name in ("SGD", "Adam", "AdamW"):
        results = []
        for lr in (0.25, torch.tensor(0.25)):
            w = torch.ones(3, requires_grad=True)
            optimizer = getattr(torch.optim, name)([w], lr=lr)
            w.grad = torch.tensor([1.0, 2.0, 3.0])
            optimizer.step()
            results.append(w.detach())
        assert torch.allclose(*results)


def test_state_is_as_documented():
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.ones(2)
    optimizer = torch.optim.Adam([w])
    optimizer.step()
    state = optimizer.state[w]
    assert list(state) == ["step", "exp_avg", "exp_avg_sq"]
    assert state["step"].shape == () and state["step"].dtype is torch.float32
    assert state["step"].item() == 1.0


@pytest.mark.parametrize("name, options, error, message", [
    ("SGD", {"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
    ("SGD", {"lr": torch.ones(2)}, ValueError, "Tensor lr must be 1-element"),
    ("SGD", {"nesterov": True}, ValueError, "Nesterov momentum requires a momentum and zero"),
    ("SGD", {"fused": True, "foreach": True}, RuntimeError, "`fused` and `foreach` cannot be"),
    ("SGD", {"fused": True, "differentiable": True}, RuntimeError, "`fused` does not support"),
    ("Adam", {"betas": (0.9, 1.0)}, ValueError, "Invalid beta parameter at index 1: 1.0"),
    ("Adam", {"eps": -1.0}, ValueError, "Invalid epsilon value: -1.0"),
    ("Adadelta", {"rho": 2.0}, ValueError, "Invalid rho value: 2.0"),
    ("Rprop", {"etas": (1.2, 0.5)}, ValueError, "Invalid eta values: 1.2, 0.5"),
    ("Adafactor", {"lr": -1.0}, ValueError, "Learning rate should be >= 0 but is: -1.0"),
    ("Adafactor", {"eps": (None, -1.0)}, ValueError, "epsilon2 should be >= 0 but is: -1.0"),
])
def test_bad_options(name, options, error, message):
    with pytest.raises(error, match=message):
        getattr(torch.optim, name)([torch.ones(2, requires_grad=True)], **options)


def test_muon_takes_matrices_only():
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        torch.optim.Muon([torch.ones(3, requires_grad=True)])


def test_lbfgs_wants_one_group():
    groups = [{"params": [torch.ones(1, requires_grad=True)]} for _ in range(2)]
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        torch.optim.LBFGS(groups)


def test_lbfgs_finds_the_minimum_of_rosenbrock():
    w = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=100, tolerance_change=1e-14,
                                  line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss

    optimizer.step(closure)
    assert torch.allclose(w, torch.ones(2, dtype=torch.float64), atol=1e-6)


def test_rule_optimizers_need_a_rule():
    w = torch.ones(1, requires_grad=True)
    w.grad = torch.ones(1)
    with pytest.raises(NotImplementedError):
        RuleOptimizer([w], {"lr": 0.1}).step()


@pytest.mark.parametrize("kind, options, names", [
    (torch.optim.NAdam, {}, ["exp_avg", "exp_avg_sq", "mu_product"]),
    (torch.optim.Adam, {"amsgrad": True}, ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"])])
def test_gradients_flow_through_all_of_the_state(kind, options, names):
    def step(p, grad, *state):
        p = p.clone()
        p.grad = grad
        optimizer = kind([p], lr=0.9, differentiable=True, **options)
        optimizer.state[p].update(step=torch.tensor(10.0, dtype=torch.float64),
                                  **{n: s.clone() for n, s in zip(names, state)})
        optimizer.step()
        return p
    inputs = [torch.rand(3, dtype=torch.float64, requires_grad=True) + 0.5 for _ in range(5)]
    inputs = [x.detach().requires_grad_() for x in inputs]
    if kind is torch.optim.NAdam:
        inputs[4] = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(step, inputs)


def test_lbfgs_keeps_the_shares_of_its_history_and_the_step_as_it_was_given():
    x = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], history_size=5)

    def closure():
        optimizer.zero_grad()
        loss = ((x - 0.3) ** 4).sum() + x.sin().sum()
        loss.backward()
        return loss
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step(closure)
    state = optimizer.state_dict()["state"][0]
    assert type(state["t"]) is int
    assert len(state["al"]) == 5 and all(isinstance(share, torch.Tensor) for share in state["al"])


def test_devices_of_captured_steps_are_those_of_the_optimizer():
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    with pytest.raises(AssertionError, match=r"'privateuseone'\]"):
        torch.optim.Adadelta([p], capturable=True).step()
    with pytest.raises(AssertionError, match=r"'privateuseone', 'xla'\]"):
        torch.optim.Adam([p], capturable=True).step()


@pytest.mark.parametrize("make", [
    torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop,
    lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.001), weight_decay=0.2, amsgrad=True)])
def test_complex_parameters_are_updated_as_their_parts(make):
    torch.manual_seed(0)
    whole = torch.randn(3, dtype=torch.complex64, requires_grad=True)
    parts = [part.detach().clone().requires_grad_() for part in (whole.real, whole.imag)]
    one, other = make([whole]), make(parts)
    for _ in range(4):
        whole.grad = torch.randn_like(whole)
        for part, grad in zip(parts, (whole.grad.real, whole.grad.imag)):
            part.grad = grad.clone()
        one.step()
        other.step()
        assert torch.equal(whole.real, parts[0]) and torch.equal(whole.imag, parts[1])
