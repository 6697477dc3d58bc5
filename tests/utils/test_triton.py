"""Triton has no device here."""
import importlib.util

import pytest

from flambeau.utils import _triton


def test_the_package():
    installed = importlib.util.find_spec("triton") is not None
    assert _triton.has_triton_package() is installed
    if not installed:
        assert _triton.get_triton_version((9, 9)) == (9, 9)
        with pytest.raises(ImportError):
            _triton.triton_backend()
    assert _triton.has_triton() is False and _triton.has_triton_tma_device() is False
