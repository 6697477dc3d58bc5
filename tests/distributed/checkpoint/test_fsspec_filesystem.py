"""Checkpoints in places that fsspec knows."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed import checkpoint as dcp

pytest.importorskip("fsspec")


def test_urls():
    where = "memory://checkpoints/a"
    dcp.save({"w": torch.ones(2), "step": 3}, checkpoint_id=where)
    dcp.save({"w": torch.ones(2), "step": 4}, checkpoint_id=where)
    room = {"w": torch.zeros(2), "step": 0}
    dcp.load(room, checkpoint_id=where)
    assert room["step"] == 4 and room["w"].sum() == 2


def test_files():
    from flambeau.distributed.checkpoint._fsspec_filesystem import FileSystem
    system = FileSystem()
    folder = system.init_path("memory://folder/a")
    system.mkdir(folder)
    path, other = system.concat_path(folder, "x"), system.concat_path(folder, "y")
    with system.create_stream(path, "wb") as file:
        file.write(b"data")
    system.rename(path, other)
    assert system.exists(other) and not system.exists(path)
    with system.create_stream(other, "rb") as file:
        assert file.read() == b"data"
    system.rm_file(other)
    assert not system.exists(other)


@pytest.mark.parametrize(("place", "can"), [("memory://x", True), ("no_such_scheme://x", False)])
def test_places(place, can):
    from flambeau.distributed.checkpoint._fsspec_filesystem import FileSystem
    assert FileSystem.validate_checkpoint_id(place) is can


def test_a_write_that_fails_leaves_nothing():
    from flambeau.distributed.checkpoint._fsspec_filesystem import FileSystem
    system = FileSystem()
    path = system.init_path("memory://folder/broken")
    with pytest.raises(KeyError), system.create_stream(path, "wb") as file:
        file.write(b"half")
        raise KeyError
    assert not system.exists(path)
