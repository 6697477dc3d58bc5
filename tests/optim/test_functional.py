"""Steps on lists of tensors do what the optimisers do."""

import inspect

import pytest
from optim_cases import OPTIMIZERS, start

import flambeau as torch
from flambeau.optim import _functional, _muon, adafactor, adamw

KEPT = {"SGD": "momentum_buffer", "Adam": "exp_avg exp_avg_sq max_exp_avg_sq step",
        "AdamW": "exp_avg exp_avg_sq max_exp_avg_sq step", "Adadelta": "square_avg acc_delta step",
        "Adagrad": "sum step", "Adamax": "exp_avg exp_inf step", "ASGD": "ax mu eta step",
        "NAdam": "exp_avg exp_avg_sq mu_product step", "RAdam": "exp_avg exp_avg_sq step",
        "RMSprop": "square_avg grad_avg momentum_buffer step", "Rprop": "prev step_size step",
        "Adafactor": "row_var col_var variance step", "Muon": "momentum_buffer"}
OPTIONS = {"betas": ("beta1", "beta2"), "step_sizes": ("step_size_min", "step_size_max"),
           "etas": ("etaminus", "etaplus"), "eps": ("eps1", "eps2")}


def function_of(name):
    if name == "Muon":
        return _muon.muon
    return adafactor.adafactor if name == "Adafactor" else getattr(_functional, name.lower())


def options_of(name, group):
    """The options of a group by the names that the function has."""
    found = dict(group)
    for key, parts in OPTIONS.items():
        if isinstance(group.get(key), tuple):
            found |= dict(zip(parts, found.pop(key), strict=True))
    known = inspect.signature(function_of(name)).parameters
    return {key: value for key, value in found.items() if key in known and key != "params"}


@pytest.mark.parametrize("name, options",
                         [(name, options) for name in KEPT for options in OPTIMIZERS[name]])
def test_functions_step_like_the_classes(name, options):
    optimizer = getattr(torch.optim, name)(start(torch, name, "float64"), **options)
    params = start(torch, name, "float64")
    group = optimizer.param_groups[0]
    for p in group["params"]:
        p.grad = torch.sin(p.detach()) + 0.1
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(params, group["params"], strict=True):
            p.copy_(q)
    kept = [[optimizer.state[p].get(key) for p in group["params"]] for key in KEPT[name].split()]
    kept = [[v if v is None else v.clone() for v in values] for values in kept]
    kept = [[] if values[0] is None and name not in ("SGD", "Adafactor") else values
            for values in kept]
    for p in group["params"]:
        p.grad = torch.cos(p.detach())
    grads = [p.grad.clone() for p in group["params"]]
    optimizer.step()
    extra = {"has_complex": False} if name == "Muon" else {}
    with torch.no_grad():
        function_of(name)(params, grads, *kept, **options_of(name, group), **extra)
    for p, q in zip(params, group["params"], strict=True):
        assert torch.equal(p, q)
    for key, values in zip(KEPT[name].split(), kept, strict=True):
        for p, value in zip(group["params"], values, strict=False):
            own = optimizer.state[p].get(key)
            assert (own is None and value is None) or torch.equal(own, value)


def step_of_sgd(p, grad, buffers, **options):
    _functional.sgd([p], [grad], buffers, **options, weight_decay=0, momentum=0.9, lr=0.1,
                    dampening=0, nesterov=False, maximize=False)


def step_of_adamw(p, steps, **options):
    adamw.adamw([p], [torch.ones(2)], [torch.zeros(2)], [torch.zeros(2)], [], steps, **options,
                amsgrad=False, beta1=0.9, beta2=0.99, lr=0.1, weight_decay=0, eps=1e-8,
                maximize=False)


def test_sgd_as_recorded():
    p, grad, buffers = torch.ones(2, requires_grad=True), torch.ones(2), [None]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        step_of_sgd(p, grad, buffers)
    buffers = [None]
    with torch.no_grad():
        step_of_sgd(p, grad, buffers)
        assert buffers[0].tolist() == [1.0, 1.0]
        assert p.tolist() == pytest.approx([0.9, 0.9])
        scale = {"fused": True, "grad_scale": torch.tensor(2.0)}
        step_of_sgd(p, grad, buffers, **scale, found_inf=torch.tensor(1.0))
        assert p.tolist() == pytest.approx([0.9, 0.9])
        step_of_sgd(p, grad, buffers, **scale, found_inf=torch.tensor(0.0))
        assert grad.tolist() == [0.5, 0.5]
        assert buffers[0].tolist() == pytest.approx([1.4, 1.4])
        assert p.tolist() == pytest.approx([0.76, 0.76])
        with pytest.raises(AssertionError, match="Expected grad_scale and found_inf to be None"):
            step_of_sgd(p, grad, buffers, grad_scale=torch.tensor(2.0))


def test_sparse_adam_leaves_the_steps_alone():
    p, steps = torch.zeros(3), [1]
    grad = torch.sparse_coo_tensor([[1]], [2.0], (3,))
    means = [torch.zeros(3)], [torch.zeros(3)]
    _functional.sparse_adam([p], [grad], *means, steps, eps=1e-8, beta1=0.9, beta2=0.99, lr=0.1,
                            maximize=False)
    assert steps == [1]
    assert p.tolist() == pytest.approx([0.0, -0.1, 0.0])


def test_refusals():
    p = torch.ones(2)
    with pytest.raises(RuntimeError, match="must contain a list of singleton tensors"):
        step_of_adamw(p, [1])
    with pytest.raises(AssertionError, match="If capturable=True, params and state_steps must be"):
        step_of_adamw(p, [torch.tensor(1.0)], capturable=True)
    with pytest.raises(RuntimeError, match="Foreach is not supported for Muon"):
        _muon.muon([p], [p], [p], foreach=True, lr=0.1, weight_decay=0, momentum=0.9, eps=1e-7,
                   nesterov=True, ns_coefficients=(1, 2, 3), ns_steps=5, adjust_lr_fn=None,
                   has_complex=False)
