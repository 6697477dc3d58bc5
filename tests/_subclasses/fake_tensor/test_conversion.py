"""Fake forms of real tensors."""
from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._subclasses import FakeTensor, FakeTensorMode
from flambeau._subclasses.fake_tensor import is_fake


@pytest.fixture
def mode():
    return FakeTensorMode()


def test_of_real_tensors(mode):
    weight = nn.Parameter(torch.ones(4, 4))
    fake = mode.from_tensor(weight)
    assert type(fake) is FakeTensor and isinstance(fake, nn.Parameter) and fake.is_leaf
    assert mode.from_tensor(weight) is fake and is_fake(fake) and not is_fake(weight)
    base = torch.ones(4, 4)
    view = mode.from_tensor(base[1:, 2:])
    assert view._base is mode.from_tensor(base) and view.storage_offset() == 6
    assert view.stride() == (4, 1) and not view.is_meta and view.device.type == "cpu"
    assert view.view_as(view)._base is view._base
    assert isinstance(copy.deepcopy(fake), FakeTensor)
