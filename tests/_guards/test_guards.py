"""Which fake mode is at work."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._guards import TracingContext, active_fake_mode, detect_fake_mode, tracing
from flambeau._subclasses import FakeTensorMode
from flambeau._subclasses.fake_tensor import maybe_get_fake_mode, unset_fake_temporarily


@pytest.fixture
def mode():
    return FakeTensorMode()


def test_which_mode(mode):
    x = mode.from_tensor(torch.ones(1))
    assert detect_fake_mode([x]) is mode is maybe_get_fake_mode(x)
    assert detect_fake_mode() is active_fake_mode() is None
    with mode:
        assert active_fake_mode() is mode
        with unset_fake_temporarily() as found:
            assert found is mode and type(torch.ones(1)) is torch.Tensor
    with tracing(TracingContext(mode)):
        assert detect_fake_mode() is mode
        with pytest.raises(AssertionError, match="doesn't match mode"):
            detect_fake_mode([FakeTensorMode().from_tensor(torch.ones(1))])
