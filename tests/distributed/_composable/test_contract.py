"""What may be applied to a module, and once."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed._composable import contract
from flambeau.distributed._composable.contract import _get_registry


@contract()
def mark(module, value=1):
    mark.state(module).value = value
    return module


@contract()
def rename(module):
    module.extra = nn.Parameter(torch.ones(1))
    return module


def test_contracts():
    layer = nn.Linear(1, 1)
    assert mark(layer, value=3) is layer and mark.state(layer).value == 3
    assert list(_get_registry(layer)) == ["mark"] and _get_registry(nn.ReLU()) is None
    with pytest.raises(AssertionError, match="mark has already been applied"):
        mark(layer)
    with pytest.raises(RuntimeError, match=r"Checking parameters: .*cannot modify FQNs"):
        rename(nn.Linear(1, 1))
