"""Optimizers that are given gradients, against those that read them."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn


def check(cls, functional_cls, **options):
    """Three steps of both are the same."""
    plain, given = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer = cls([plain], **options)
    functional = functional_cls([given], **options)
    for step in range(3):
        plain.grad = torch.tensor([1.0, -2.0, 3.0]) * (step + 1)
        optimizer.step()
        functional.step([plain.grad])
    torch.testing.assert_close(plain, given)
    assert given.grad is None
    kept = {name for name in functional.state[given] if functional.state[given][name] is not None}
    assert kept >= {name for name in optimizer.state[plain]
                    if optimizer.state[plain][name] is not None}
    with pytest.raises(ValueError, match="empty parameter list"):
        functional_cls([])
    assert functional_cls([], _allow_empty_param_list=True).param_group["params"] == []
    with pytest.raises(ValueError, match=r"Params length: 1\. Gradients length: 2"):
        functional.step([plain.grad, plain.grad])
    functional.step([None])                         # no gradient, no step
    torch.testing.assert_close(plain, given)


def check_single(functional_cls, **options):
    """`step_param` is a step of one parameter that nobody has announced."""
    first, second = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    whole = functional_cls([first], **options)
    single = functional_cls([], _allow_empty_param_list=True, **options)
    for step in range(3):
        gradient = torch.tensor([1.0, -2.0, 3.0]) * (step + 1)
        whole.step([gradient])
        single.step_param(second, gradient)
    torch.testing.assert_close(first, second)


def check_refused(functional_cls, *cases):
    """Options that are refused, and with which words."""
    for options, words in cases:
        with pytest.raises(ValueError, match=words):
            functional_cls([torch.ones(1)], **options)
