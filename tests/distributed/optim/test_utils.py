"""Optimizers by those that read gradients."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import optim
from flambeau.distributed.optim import as_functional_optim
from flambeau.distributed.optim.utils import functional_optim_map, register_functional_optim


def test_one_parameter_at_a_time():
    weight = torch.nn.Parameter(torch.ones(2))
    functional = as_functional_optim(optim.SGD, lr=0.1, momentum=0.9)
    for _ in range(2):
        functional.step_param(weight, torch.ones(2))
    torch.testing.assert_close(weight.data, torch.full((2,), 0.71))
    assert functional.defaults["momentum"] == 0.9 and not functional.nesterov


def test_all_have_one():
    assert {cls.__name__ for cls in functional_optim_map} == {
        "Adagrad", "Adam", "AdamW", "SGD", "Adadelta", "RMSprop", "Rprop", "Adamax"}
    for cls, functional in functional_optim_map.items():
        assert functional.__name__ == f"_Functional{cls.__name__}"


def test_of_the_user(monkeypatch):
    class Own(optim.SGD):
        pass

    class OwnFunctional:
        def __init__(self, params, _allow_empty_param_list, lr):
            self.given = params, _allow_empty_param_list, lr
    with pytest.raises(ValueError, match=r"Optimizer .*Own.* does not have a functional"):
        as_functional_optim(Own, lr=1)
    register_functional_optim(Own, OwnFunctional)
    try:
        register_functional_optim(Own, int)             # the first stays
        assert as_functional_optim(Own, lr=3).given == ([], True, 3)
    finally:
        del functional_optim_map[Own]
