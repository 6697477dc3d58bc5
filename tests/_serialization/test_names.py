"""Constants and small functions of `torch.serialization`."""
import os
import types

import pytest

import flambeau as torch
from flambeau import serialization


@pytest.mark.parametrize("version, wanted, enough", [
    ("2.13.0", (2, 0), True), ("1.9", (2, 0), False), ("2.0", (2, 0), True),
    ("2.0.1", (2, 0, 2), False)])
def test_versions(version, wanted, enough):
    module = types.SimpleNamespace(__name__="dill", __version__=version)
    assert serialization.check_module_version_greater_or_equal(module, wanted) is enough


def test_versions_that_are_none():
    module = types.SimpleNamespace(__name__="dill", __version__="x.y")
    with pytest.raises(RuntimeError, match=r"'dill' module version string is malformed 'x.y'"):
        serialization.check_module_version_greater_or_equal(module, (1, 0))
    with pytest.warns(UserWarning, match="continuing assuming that requirement is met"):
        assert serialization.check_module_version_greater_or_equal(
            module, (1, 0), error_if_malformed=False)


def test_types_of_storages():
    assert serialization.StorageType("FloatStorage").dtype is torch.float32
    assert str(serialization.StorageType("HalfStorage")) == "StorageType(dtype=torch.float16)"
    with pytest.raises(KeyError, match='pickle storage type "NoStorage" is not recognized'):
        serialization.StorageType("NoStorage").dtype
    assert serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage


def test_sources():
    lines, first, path = serialization.get_source_lines_and_file(test_sources)
    assert lines[0] == "def test_sources():\n" and path == __file__ and first > 1
    scope = {}
    exec("def f(): pass", scope)
    with pytest.raises(OSError, match=r"Can't get source for .*\n?.*more"):
        serialization.get_source_lines_and_file(scope["f"], "and more")


def test_folders_for_a_while():
    with serialization.mkdtemp() as path:
        assert os.path.isdir(path)
    assert not os.path.exists(path)


def test_devices_that_are_not_there():
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
            serialization.validate_cuda_device("cuda:0")
