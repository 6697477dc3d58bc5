"""XPU where there is none: what asks is answered, what needs a device says so."""

import pytest

import flambeau as torch

xpu = torch.xpu


def test_there_is_none():
    assert xpu.is_available() is False and xpu.device_count() == 0
    assert xpu.is_initialized() is False


@pytest.mark.parametrize("name", ["synchronize", "current_device", "current_stream"])
def test_what_needs_a_device_says_so(name):
    with pytest.raises((AssertionError, RuntimeError)):
        getattr(xpu, name)()


def test_seeds_wait_for_a_device():
    assert xpu.manual_seed(3) is None and xpu.manual_seed_all(3) is None
