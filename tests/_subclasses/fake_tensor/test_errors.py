"""What cannot be known without values."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._subclasses import FakeTensorMode
from flambeau._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
)


@pytest.fixture
def mode():
    return FakeTensorMode()


@pytest.mark.parametrize(("make", "error"), [
    (lambda: torch.ones(2).sum().item(), DataDependentOutputException),
    (lambda: bool(torch.ones(1) > 0), DataDependentOutputException),
    (lambda: torch.ones(2).nonzero(), DynamicOutputShapeException),
    (lambda: torch.ones(2)[torch.ones(2) > 0], DynamicOutputShapeException),
    (lambda: torch.ones(2) + torch.ones(2, device="cuda"), FakeTensorDeviceMismatchError),
    (lambda: torch.ones(2).numpy(), RuntimeError),
])
def test_values_are_not_there(mode, make, error):
    with mode, pytest.raises(error):
        make()
