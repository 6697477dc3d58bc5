"""Locks that are files."""
import pytest

from flambeau.utils import _filelock


def test_a_lock_keeps_others_out(tmp_path):
    filelock = pytest.importorskip("filelock")
    with _filelock.FileLock(tmp_path / "lock"), pytest.raises(filelock.Timeout):
        _filelock.FileLock(tmp_path / "lock").acquire(timeout=0)


def test_nothing_else_is_there():
    with pytest.raises(AttributeError):
        _filelock.Other
