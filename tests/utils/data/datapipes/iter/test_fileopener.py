"""Files, opened."""
import pytest

from flambeau.utils.data.datapipes.iter import FileOpener, IterableWrapper


def test_streams_and_their_paths(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("hé", encoding="utf-8")
    (found, stream), = FileOpener(IterableWrapper([str(path)]), mode="b")
    assert found == str(path) and stream.read() == "hé".encode()
    (_, stream), = IterableWrapper([str(path)]).open_files(mode="t", encoding="utf-8")
    assert stream.read() == "hé"


def test_modes():
    with pytest.raises(ValueError, match="Invalid mode zz"):
        FileOpener(IterableWrapper([]), mode="zz")
    assert len(FileOpener(IterableWrapper([]), length=4)) == 4
    with pytest.raises(TypeError, match="doesn't have valid length"):
        len(FileOpener(IterableWrapper([])))
