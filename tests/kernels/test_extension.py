"""The C++ extension: whether it is there, and why not."""
import os
import subprocess
import sys

import pytest

from flambeau.kernels import _extension

SHOW = "from flambeau.kernels import _extension as e; print(e.native is None, e.why_not)"


def test_either_it_or_a_reason():
    assert (_extension.native is None) is (_extension.why_not is not None)
    if _extension.native is not None:
        assert _extension.native.interface == _extension.INTERFACE


def test_it_can_be_left_out():
    environment = {**os.environ, "FLAMBEAU_KERNELS": "reference"}
    shown = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True,
                           env=environment, check=True).stdout
    assert shown.strip() == "True FLAMBEAU_KERNELS=reference"


def test_one_of_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(_extension, "INTERFACE", -1)
    if _extension.native is None:
        pytest.skip("no extension")
    with pytest.raises(ImportError, match="built for another version of flambeau"):
        _extension._load()


def test_misfits_are_errors_of_values_and_places():
    assert issubclass(_extension.Misfit, (ValueError, IndexError))


def test_without_the_extension_the_twin_stays(monkeypatch):
    monkeypatch.setattr(_extension, "native", None)
    twin = lambda x: x
    assert _extension.compiled("anything")(twin) is twin
