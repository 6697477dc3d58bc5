"""A lock that is a file."""
import threading
import time

import pytest

from flambeau.utils.file_baton import FileBaton


def test_one_has_it(tmp_path):
    path = str(tmp_path / "lock")
    first, second = FileBaton(path), FileBaton(path, wait_seconds=0.01)
    assert first.try_acquire() and not second.try_acquire()
    timer = threading.Timer(0.05, first.release)
    start = time.monotonic()
    timer.start()
    second.wait()
    assert time.monotonic() - start >= 0.04 and not (tmp_path / "lock").exists()
    assert second.try_acquire()
    second.release()


def test_a_long_wait_is_warned_of(tmp_path):
    path = str(tmp_path / "lock")
    first = FileBaton(path)
    assert first.try_acquire()
    threading.Timer(0.1, first.release).start()
    with pytest.warns(UserWarning, match="Waited on lock file"):
        FileBaton(path, wait_seconds=0.01, warn_after_seconds=0.02).wait()


def test_the_folder_must_exist(tmp_path):
    with pytest.raises(FileNotFoundError):
        FileBaton(str(tmp_path / "none" / "lock")).try_acquire()
