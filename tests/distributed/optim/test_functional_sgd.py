"""`SGD` that is given gradients."""
from __future__ import annotations

import pytest

from flambeau import optim
from flambeau.distributed.optim.functional_sgd import _FunctionalSGD

from .functional_cases import check, check_single


@pytest.mark.parametrize("options", [
    {"lr": 0.1}, {"lr": 0.1, "momentum": 0.9, "nesterov": True}, {"lr": 0.1, "weight_decay": 0.1},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, {"lr": 0.1, "maximize": True}])
def test_given_gradients(options):
    check(optim.SGD, _FunctionalSGD, **options)


def test_one_parameter_at_a_time():
    check_single(_FunctionalSGD, lr=0.1, momentum=0.9)
