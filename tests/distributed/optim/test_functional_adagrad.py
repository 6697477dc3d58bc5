"""`Adagrad` that is given gradients."""
from __future__ import annotations

import pytest

from flambeau import optim
from flambeau.distributed.optim.functional_adagrad import _FunctionalAdagrad

from .functional_cases import check


@pytest.mark.parametrize("options", [
    {}, {"lr": 0.5, "lr_decay": 0.1, "weight_decay": 0.1}, {"initial_accumulator_value": 0.5},
    {"maximize": True}])
def test_given_gradients(options):
    check(optim.Adagrad, _FunctionalAdagrad, **options)
