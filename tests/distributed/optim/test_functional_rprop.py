"""`Rprop` that is given gradients."""
from __future__ import annotations

import pytest

from flambeau import optim
from flambeau.distributed.optim.functional_rprop import _FunctionalRprop

from .functional_cases import check


@pytest.mark.parametrize("options", [
    {}, {"lr": 0.5, "etas": (0.3, 1.5)}, {"step_sizes": (1e-3, 0.2)}, {"maximize": True}])
def test_given_gradients(options):
    check(optim.Rprop, _FunctionalRprop, **options)
