"""Optimizers that step in the backward pass."""
from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.distributed.optim import _apply_optimizer_in_backward, _get_in_backward_optimizers


def test_steps_in_backward():
    layer = nn.Linear(2, 1)
    for _ in range(2):
        _apply_optimizer_in_backward(torch.optim.SGD, layer.parameters(), {"lr": 0.1})
    before = layer.weight.detach().clone()
    layer(torch.ones(1, 2)).sum().backward()
    torch.testing.assert_close(layer.weight.data, before - 0.2)
    assert layer.weight.grad is None and len(_get_in_backward_optimizers(layer)) == 4


def test_who_calls_is_up_to_others():
    layer = nn.Linear(2, 1)
    _apply_optimizer_in_backward(torch.optim.SGD, [layer.weight], {"lr": 0.1},
                                 register_hook=False)
    before = layer.weight.detach().clone()
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1]] and torch.equal(layer.weight, before)
    (optimizer,) = layer.weight._in_backward_optimizers
    assert layer.weight._optimizer_classes == [torch.optim.SGD]
    assert layer.weight._optimizer_kwargs == [{"lr": 0.1}]
    optimizer.step()
    torch.testing.assert_close(layer.weight.detach(), before - 0.1)
    assert _get_in_backward_optimizers(nn.Linear(1, 1)) == []
