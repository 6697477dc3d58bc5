"""The file system of this machine."""
from __future__ import annotations

from pathlib import Path

import pytest

from flambeau.distributed.checkpoint.filesystem import FileSystem


def test_files(tmp_path):
    system = FileSystem()
    folder = system.init_path(str(tmp_path / "a" / "b"))
    system.mkdir(folder)
    system.mkdir(folder)
    path = system.concat_path(folder, "x")
    assert path == tmp_path / "a" / "b" / "x" and not system.exists(path)
    with system.create_stream(path, "wb") as file:
        file.write(b"data")
    with system.create_stream(str(path), "rb") as file:
        assert file.read() == b"data"
    other = system.concat_path(folder, "y")
    system.rename(path, other)
    assert system.exists(other) and not system.exists(path)
    assert system.ls(folder) == [str(other)]
    system.rm_file(other)
    assert not system.exists(other)
    with pytest.raises(FileNotFoundError), system.create_stream(other, "rb"):
        pass


@pytest.mark.parametrize(("place", "can"), [
    (Path("x"), True), ("/tmp/x", True), ("memory://x", False), ("s3://x/y", False),
    ("/tmp/no/such/folder", True)])
def test_places(place, can):
    assert FileSystem.validate_checkpoint_id(place) is can
