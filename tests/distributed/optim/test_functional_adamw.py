"""`AdamW` that is given gradients."""
from __future__ import annotations

import pytest

from flambeau import optim
from flambeau.distributed.optim.functional_adamw import _FunctionalAdamW

from .functional_cases import check, check_refused, check_single


@pytest.mark.parametrize("options", [
    {"weight_decay": 0.01}, {"lr": 0.5, "betas": (0.5, 0.7)},
    {"amsgrad": True}, {"maximize": True}])
def test_given_gradients(options):
    check(optim.AdamW, _FunctionalAdamW, **options)


@pytest.mark.parametrize("options", [{}, {"amsgrad": True, "lr": 0.3}])
def test_one_parameter_at_a_time(options):
    check_single(_FunctionalAdamW, **options)


def test_what_is_refused():
    check_refused(
        _FunctionalAdamW, ({"lr": -1.0}, r"Invalid learning rate: -1\.0"),
        ({"eps": -1.0}, r"Invalid epsilon value: -1\.0"),
        ({"betas": (1.0, 0.5)}, r"Invalid beta parameter at index 0: 1\.0"),
        ({"betas": (0.5, -0.5)}, r"Invalid beta parameter at index 1: -0\.5"),
        ({"weight_decay": -1.0}, r"Invalid weight_decay value: -1\.0"))
