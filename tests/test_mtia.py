"""MTIA where there is none: what asks is answered, what needs a device says so."""

import pytest

import flambeau as torch

mtia = torch.mtia


def test_there_is_none():
    assert mtia.is_available() is False and mtia.device_count() == 0
    assert mtia.is_initialized() is False


@pytest.mark.parametrize("name", ["synchronize", "current_device", "current_stream"])
def test_what_needs_a_device_says_so(name):
    with pytest.raises((AssertionError, RuntimeError)):
        getattr(mtia, name)()


def test_seeds_wait_for_a_device():
    assert mtia.manual_seed(3) is None and mtia.manual_seed_all(3) is None
