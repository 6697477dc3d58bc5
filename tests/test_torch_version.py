"""Versions compare as versions, and are text."""

import pickle

import pytest

import flambeau as torch
from flambeau.torch_version import TorchVersion


@pytest.mark.parametrize("other", ["1.9.0", (1, 9), (1, 9, 0), "1.9.0a0"])
def test_later_than(other):
    version = TorchVersion("1.10.0")
    assert version > other and version >= other and version != other
    assert not version < other and not version <= other


def test_equal():
    version = TorchVersion("1.10.0+cpu")
    assert version == "1.10.0+cpu" and version > "1.10.0"
    assert TorchVersion("1.10.0") == (1, 10, 0) and TorchVersion("1.10") == "1.10.0"


def test_what_is_no_version_is_compared_as_text():
    version = TorchVersion("1.10.0")
    assert version < "parrot" and version != "parrot"


def test_it_is_text():
    version = TorchVersion("1.10.0")
    assert isinstance(version, str) and version.startswith("1.10") and version.split(".")[0] == "1"
    assert pickle.loads(pickle.dumps(version)) == version
    assert isinstance(torch.__version__, TorchVersion) and torch.__version__ >= (2,)
