"""`RMSprop` that is given gradients."""
from __future__ import annotations

import pytest

from flambeau import optim
from flambeau.distributed.optim.functional_rmsprop import _FunctionalRMSprop

from .functional_cases import check


@pytest.mark.parametrize("options", [
    {}, {"lr": 0.5, "alpha": 0.5}, {"momentum": 0.9, "centered": True}, {"maximize": True}])
def test_given_gradients(options):
    check(optim.RMSprop, _FunctionalRMSprop, **options)
