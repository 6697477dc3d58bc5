"""The storage of a checkpoint of which only the name is given."""
import pytest

from flambeau.distributed.checkpoint import FileSystemReader, FileSystemWriter
from flambeau.distributed.checkpoint._storage_utils import _storage_setup


def test_folders(tmp_path):
    assert type(_storage_setup(None, tmp_path, reader=True)) is FileSystemReader
    writer = _storage_setup(None, str(tmp_path / "new"))
    assert type(writer) is FileSystemWriter and writer.checkpoint_id == tmp_path / "new"


def test_storages_are_told_where(tmp_path):
    writer = FileSystemWriter(tmp_path / "a")
    assert _storage_setup(writer, None) is writer and writer.checkpoint_id == tmp_path / "a"
    assert _storage_setup(writer, tmp_path / "b") is writer
    assert writer.checkpoint_id == tmp_path / "b"


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified if storage_reader"):
        _storage_setup(None, None)
