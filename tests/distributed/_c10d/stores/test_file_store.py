"""A store in a file."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist


def test_a_file_is_shared(tmp_path):
    first, second = (dist.FileStore(str(tmp_path / "store"), 2) for _ in range(2))
    first.set("key", "value")
    assert second.get("key") == b"value"


def test_it_goes_on_where_it_was(tmp_path):
    path = str(tmp_path / "store")
    store = dist.FileStore(path, 2)
    store.set("key", "value"), store.set("gone", "x"), store.delete_key("gone")
    other = dist.FileStore(path, 2)
    assert other.path == path and other.get("key") == b"value" and not other.check(["gone"])
    assert other.add("n", 2) == 2 and store.add("n", 3) == 5


def test_folders_that_are_none():
    with pytest.raises((RuntimeError, OSError)):
        dist.FileStore("/no/such/folder/store", 1).set("a", "b")
