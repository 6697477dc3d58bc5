"""`Adadelta` that is given gradients."""
from __future__ import annotations

import pytest

from flambeau import optim
from flambeau.distributed.optim.functional_adadelta import _FunctionalAdadelta

from .functional_cases import check


@pytest.mark.parametrize("options", [
    {}, {"lr": 0.5, "rho": 0.8, "eps": 1e-3}, {"weight_decay": 0.1}, {"maximize": True}])
def test_given_gradients(options):
    check(optim.Adadelta, _FunctionalAdadelta, **options)
