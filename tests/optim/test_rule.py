"""What is the same for all rules: kernels, old checkpoints, learning rates in tensors, captured
steps, derivatives of a step."""
import pytest

import flambeau as torch
from flambeau.optim.rule import RuleOptimizer, apply_rule
from flambeau.utils._python_dispatch import TorchDispatchMode


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


class Halving(RuleOptimizer):
    """Halves what a parameter is, and counts how often."""

    def __init__(self, params, **options):
        super().__init__(params, {"lr": 1.0, "maximize": False, **options})

    def init_state(self, p, group, state):
        state["step"] = torch.tensor(0.0)

    def update(self, p, grad, group, state):
        p.mul_(0.5).add_(grad, alpha=0.0 if group["lr"] else 1.0)


def test_a_rule_is_one_method():
    p, q = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    optimizer = Halving([p, q])
    p.grad = torch.ones(2)
    assert optimizer.step(lambda: torch.tensor(3.0)).item() == 3.0
    assert p.tolist() == [0.5, 0.5] and q.tolist() == [1, 1]
    assert optimizer.state[p]["step"].item() == 1 and q not in optimizer.state
    p.grad = torch.ones(2).to_sparse()
    with pytest.raises(RuntimeError, match="Halving does not support sparse gradients"):
        optimizer.step()


def test_decay_and_maximize_come_before_the_rule():
    p = torch.full((2,), 4.0, requires_grad=True)
    p.grad = torch.ones(2)
    Halving([p], lr=0, weight_decay=0.5, maximize=True).step()
    assert p.tolist() == [2 + 1.0, 2 + 1.0]                     # 4/2 + (-1 + 0.5 · 4)


def test_options_that_an_old_checkpoint_lacks_are_off():
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    optimizer = torch.optim.Adam([p], amsgrad=True, maximize=True)
    optimizer.step()
    saved = optimizer.state_dict()
    for option in ("amsgrad", "maximize", "foreach", "capturable", "differentiable", "fused"):
        del saved["param_groups"][0][option]
    saved["state"][0]["step"] = 3
    optimizer.load_state_dict(saved)
    group = optimizer.param_groups[0]
    assert [group[name] for name in ("amsgrad", "maximize", "capturable", "foreach")] == [
        False, False, False, None]
    step = optimizer.state[p]["step"]
    assert (step.item(), step.dtype) == (3.0, torch.float32)


def test_differentiable_has_to_be_a_bool():
    p = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=r"'enabled' .* must be bool, not int"):
        torch.optim.Adam([p], differentiable=1).step()


def test_one_step_with_state_that_the_caller_keeps():
    p, grad, steps = torch.ones(2), torch.ones(2), [torch.tensor(2.0)]
    with torch.no_grad():
        apply_rule(Halving, [p], [grad], {"step": steps}, lr=1.0)
    assert p.tolist() == [0.5, 0.5] and steps[0].item() == 3.0


def test_state_lies_in_the_order_of_the_parameters():
    """Whatever their types are, and which of them a kernel takes together."""
    dtypes = [torch.float32, torch.float64, torch.bfloat16, torch.float32, torch.complex64]
    params = [torch.ones(2, dtype=dtype, requires_grad=True) for dtype in dtypes]
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer = torch.optim.Adam(params)
    optimizer.step()
    assert list(optimizer.state_dict()["state"]) == [0, 1, 2, 3, 4]


def stepped(rule, *dtypes, sparse=False, **options):
    params = [torch.ones(2, 2, dtype=dtype).requires_grad_() for dtype in dtypes]
    optimizer = rule(params, **options)
    for p in params:
        grad = torch.full((2, 2), 0.5).to(p.dtype)
        p.grad = grad.to_sparse(1) if sparse else grad
    optimizer.step()
    return [p.detach() for p in params]


@pytest.mark.parametrize("rule, dtypes, options, error, message", [
    ("SGD", "f", {"sparse": True, "weight_decay": 0.5}, RuntimeError,
     "add(sparse, dense) is not supported. Use add(dense, sparse) instead."),
    ("Adagrad", "f", {"sparse": True, "weight_decay": 0.5}, RuntimeError,
     "weight_decay option is not compatible with sparse gradients"),
    ("SGD", "f", {"sparse": True, "fused": True}, RuntimeError,
     "`_fused_sgd` does not support sparse gradients"),
    ("Adam", "fc", {"sparse": True, "fused": True}, RuntimeError,
     "Adam does not support sparse gradients, please consider SparseAdam instead"),
    ("SGD", "fc", {"fused": True}, NotImplementedError,
     "\"fused_sgd_kernel\" not implemented for 'ComplexFloat'"),
    ("Adam", "f", {"lr": torch.tensor([0.1, 0.2]), "foreach": True}, ValueError,
     "lr as a Tensor is not supported for capturable=False and foreach=True"),
    ("Adam", "f", {"foreach": True, "capturable": True}, AssertionError,
     "If capturable=True, params and state_steps must be on supported devices: ['cuda', 'xpu', "
     "'hpu', 'privateuseone']."),
    ("NAdam", "c", {"differentiable": True, "decoupled_weight_decay": True, "weight_decay": 0.1},
     RuntimeError,
     "a view of a leaf Variable that requires grad is being used in an in-place operation."),
    ("Adadelta", "c", {"differentiable": True}, RuntimeError,
     "a leaf Variable that requires grad is being used in an in-place operation.")])
def test_what_a_step_refuses(rule, dtypes, options, error, message):
    kinds = {"f": torch.float32, "c": torch.complex64}
    with pytest.raises(error) as caught:
        stepped(getattr(torch.optim, rule), *map(kinds.get, dtypes), **options)
    assert str(caught.value) == message


def test_sparse_gradients_of_complex_parameters():
    p, = stepped(torch.optim.Adagrad, torch.complex64, sparse=True)
    torch.testing.assert_close(p, torch.full((2, 2), 0.99 + 0j))


@pytest.mark.parametrize("rule, name", [("Adam", "betas"), ("Rprop", "etas"), ("RAdam", "betas"),
                                        ("Adafactor", "eps"), ("LBFGS", "lr")])
def test_which_missing_option_is_told(rule, name):
    optimizer = getattr(torch.optim, rule)([torch.ones(1, requires_grad=True)])
    optimizer.param_groups = [{"params": optimizer.param_groups[0]["params"]}]
    with pytest.raises(KeyError, match=name):
        optimizer.step(lambda: torch.zeros((), requires_grad=True))


ALONE = {"Adadelta": False}                     # may steps be captured on xla one by one, …
AT_ONCE = {"RMSprop": True, "Rprop": True}      # … and of all parameters at once?


@pytest.mark.parametrize("name", ["Adadelta", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam",
                                  "RMSprop", "Rprop"])
@pytest.mark.parametrize("foreach", [False, True])
def test_the_devices_of_captured_steps(name, foreach):
    p = torch.ones(2, requires_grad=True)
    optimizer = getattr(torch.optim, name)([p], capturable=True, foreach=foreach)
    p.grad = torch.ones(2)
    with pytest.raises(AssertionError, match="If capturable=True, params") as info:
        optimizer.step()
    said = AT_ONCE.get(name, False) if foreach else ALONE.get(name, True)
    assert ("'xla'" in str(info.value)) is said
    assert name != "NAdam" or ("mu_products, and" in str(info.value)) is foreach


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_complex_parameters_are_refused_before_sparse_gradients(name):
    p = torch.ones(2, 2, dtype=torch.complex64, requires_grad=True)
    optimizer = getattr(torch.optim, name)([p])
    p.grad = torch.ones(2, 2, dtype=torch.complex64).to_sparse()
    with pytest.raises(RuntimeError, match=f"{name} does not support complex parameters"):
        optimizer.step()
    assert not optimizer.state.get(p)


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_modes_see_a_named_step_which_makes_all_state_first():
    params = [torch.ones(2, requires_grad=True) for _ in range(2)]
    for p in params:
        p.grad = torch.ones(2)
    optimizer = torch.optim.Adam(params)
    with Log() as log:
        optimizer.step()
    update = ["add_.Tensor", "lerp_.Scalar", "mul_.Tensor", "addcmul_.default",
              "_local_scalar_dense.default", "sqrt.default", "div.Tensor", "add_.Tensor",
              "addcdiv_.default"]
    begin = ["lift_fresh.default", "zeros_like.default", "zeros_like.default"]
    assert log.names == ["_record_function_enter_new.default", *begin * 2, *update * 2,
                         "_record_function_exit._RecordFunction"]
