"""`Adamax` that is given gradients."""
from __future__ import annotations

import pytest

from flambeau import optim
from flambeau.distributed.optim.functional_adamax import _FunctionalAdamax

from .functional_cases import check, check_refused


@pytest.mark.parametrize("options", [
    {"lr": 0.1}, {"lr": 0.5, "betas": (0.5, 0.7)}, {"lr": 0.1, "weight_decay": 0.1},
    {"lr": 0.1, "maximize": True}])
def test_given_gradients(options):
    check(optim.Adamax, _FunctionalAdamax, **options)


def test_what_is_refused():
    check_refused(
        _FunctionalAdamax, ({"lr": -1.0}, r"Invalid learning rate: -1\.0"),
        ({"eps": -1.0}, r"Invalid epsilon value: -1\.0"),
        ({"betas": (1.0, 0.5)}, r"Invalid beta parameter at index 0: 1\.0"),
        ({"weight_decay": -1.0}, r"Invalid weight_decay value: -1\.0"))
