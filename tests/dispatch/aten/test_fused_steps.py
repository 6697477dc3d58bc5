"""Optimizer steps as ops, against the optimizers."""
import pytest

import flambeau as torch

aten = torch.ops.aten


def start(count):
    torch.manual_seed(0)
    return [[torch.randn(3, dtype=torch.float64) for _ in range(2)] for _ in range(count)]


def stepped(kind, params, grads, **options):
    copies = [p.clone().requires_grad_() for p in params]
    optimizer = kind(copies, foreach=False, **options)
    for _ in range(2):
        for p, g in zip(copies, grads):
            p.grad = g.clone()
        optimizer.step()
    return copies


@pytest.mark.parametrize("name, kind", [("_fused_adam_", torch.optim.Adam),
                                        ("_fused_adamw_", torch.optim.AdamW)])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam(name, kind, amsgrad):
    params, grads = start(2)
    expected = stepped(kind, params, grads, lr=0.1, weight_decay=0.2, amsgrad=amsgrad)
    means, squares, largest = ([torch.zeros_like(p) for p in params] for _ in range(3))
    for step in (1.0, 2.0):
        getattr(aten, name)(
            params, grads, means, squares, largest if amsgrad else [], [torch.tensor(step)] * 2,
            lr=0.1, beta1=0.9, beta2=0.999, weight_decay=0.2, eps=1e-8, amsgrad=amsgrad,
            maximize=False)
    for found, wanted in zip(params, expected):
        torch.testing.assert_close(found, wanted.detach())


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd(nesterov):
    params, grads = start(2)
    options = {"momentum": 0.9, "weight_decay": 0.1, "dampening": 0.0, "nesterov": nesterov}
    expected = stepped(torch.optim.SGD, params, grads, lr=0.1, **options)
    buffers = [torch.zeros_like(p) for p in params]
    for first in (True, False):
        aten._fused_sgd_(params, grads, buffers, lr=0.1, maximize=False, is_first_step=first,
                         **options)
    for found, wanted in zip(params, expected):
        torch.testing.assert_close(found, wanted.detach())


def test_adagrad_and_its_functional_form():
    params, grads = start(2)
    expected = stepped(torch.optim.Adagrad, params, grads, lr=0.1, lr_decay=0.1)
    sums = [torch.zeros_like(p) for p in params]
    options = {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.0, "eps": 1e-10, "maximize": False}
    before = [p.clone() for p in params]
    once, *_ = aten._fused_adagrad(params, grads, sums, [torch.tensor(1.0)] * 2, **options)
    assert all(torch.equal(p, b) for p, b in zip(params, before))
    for step in (1.0, 2.0):
        aten._fused_adagrad_(params, grads, sums, [torch.tensor(step)] * 2, **options)
        if step == 1.0:
            assert all(torch.equal(p, o) for p, o in zip(params, once))
    for found, wanted in zip(params, expected):
        torch.testing.assert_close(found, wanted.detach())


def test_scaled_gradients():
    params, grads = start(2)
    options = {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.5, "dampening": 0.0,
               "nesterov": False, "maximize": True, "is_first_step": True}
    before, doubled = [p.clone() for p in params], [2 * g for g in grads]
    aten._fused_sgd_(params, doubled, [], grad_scale=torch.tensor(2.0),
                     found_inf=torch.tensor(1.0), **options)
    assert all(torch.equal(p, b) for p, b in zip(params, before))
    aten._fused_sgd_(params, doubled, [], grad_scale=torch.tensor(2.0),
                     found_inf=torch.tensor(0.0), **options)
    for p, b, g, d in zip(params, before, grads, doubled):
        torch.testing.assert_close(p, b + 0.5 * g)
        torch.testing.assert_close(d, g)
