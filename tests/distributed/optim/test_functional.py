"""Optimizers that are given gradients: what all of them share."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.optim import _FunctionalAdam, _FunctionalSGD


def test_numbers_can_be_changed():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = _FunctionalSGD([weight], lr=0.1)
    optimizer.step([torch.ones(2)])
    optimizer.defaults["lr"] = 0.5
    optimizer.step([torch.ones(2)])
    torch.testing.assert_close(weight.detach(), torch.full((2,), 0.4))


def test_gradients_of_the_program_stay():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = _FunctionalAdam([weight], lr=0.1)
    weight.grad = kept = torch.full((2,), 7.0)
    optimizer.step([torch.ones(2)])
    assert weight.grad is kept and kept.tolist() == [7, 7]


def test_some_have_none():
    first, second = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    _FunctionalSGD([first, second], lr=0.1).step([None, torch.ones(1)])
    assert first.item() == 1 and second.item() == pytest.approx(0.9)
