"""Gradients of each sample are those that the sample has alone."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils._per_sample_grad import call_for_per_sample_grads


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_each_sample_has_the_gradient_it_has_alone(reduction):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    x = torch.rand(5, 1, 4, 4, requires_grad=True)
    losses = call_for_per_sample_grads(module, loss_reduction=reduction)(x).square().sum(1)
    (losses.sum() if reduction == "sum" else losses.mean()).backward()
    whole = x.grad * (1 if reduction == "sum" else 5)
    for i in range(5):
        one = x.detach()[i:i + 1].requires_grad_()
        module(one).square().sum().backward()
        assert torch.allclose(one.grad, whole[i:i + 1], atol=1e-6)
        for p in module.parameters():
            assert torch.allclose(p.grad, p.grad_sample[i], atol=1e-5)
            p.grad = None
    with pytest.raises(RuntimeError, match="clear out the grad_sample"):
        call_for_per_sample_grads(module)(x)


def test_rows_of_a_table():
    table = nn.Embedding(3, 1)
    call_for_per_sample_grads(table)(torch.tensor([[0, 1], [2, 2]])).sum().backward()
    assert table.weight.grad_sample.squeeze(2).tolist() == [[1, 1, 0], [0, 0, 2]]


@pytest.mark.parametrize("module, options, said", [
    (3, {}, "must be nn.Module, got int"),
    (nn.ReLU(), {"loss_reduction": "x"}, "sum or mean, got x"),
    (nn.ReLU(), {"batch_size": 0}, "must be positive, got 0"),
    (nn.ReLU(), {"batch_size": "a"}, "None or an integer, got str")])
def test_wrong_arguments(module, options, said):
    with pytest.raises(RuntimeError, match=said):
        call_for_per_sample_grads(module, **options)
