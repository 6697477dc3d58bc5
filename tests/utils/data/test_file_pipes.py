"""Pipes of files, by PyTorch's modules."""

import io

import pytest

from flambeau.utils.data.datapipes.iter import FileLister, FileOpener, IterableWrapper, StreamReader
from flambeau.utils.data.datapipes.iter.combinatorics import ShufflerIterDataPipe
from flambeau.utils.data.datapipes.map.callable import MapperMapDataPipe
from flambeau.utils.data.datapipes.utils import common


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.txt").write_text("hi")
    (tmp_path / "inner" / "b.txt").write_text("yo")
    return tmp_path


def test_files_are_listed_opened_and_read(folder):
    assert list(FileLister(str(folder))) == [str(folder / "a.txt")]
    inner = FileLister(str(folder), masks="b*", recursive=True)
    assert list(inner) == [str(folder / "inner" / "b.txt")]
    assert list(StreamReader(FileOpener(FileLister(str(folder)), mode="t"))) == [
        (str(folder / "a.txt"), "hi")]
    letters = FileLister(str(folder)).open_files(mode="b").read_from_stream(chunk=1)
    assert [data for _, data in letters] == [b"h", b"i"]
    with pytest.raises(ValueError, match="Invalid mode zz"):
        FileOpener([], mode="zz")
    with pytest.raises(TypeError, match="doesn't have valid length"):
        len(FileLister(str(folder)))
    assert len(FileLister(str(folder), length=1)) == 1


def test_streams_close_themselves():
    inner = io.BytesIO(b"ab\ncd")
    stream = common.StreamWrapper(inner)
    assert stream.read(2) == b"ab" and list(stream) == [b"\n", b"cd"] and not stream.closed
    assert repr(common.StreamWrapper(inner, name="n")).startswith("StreamWrapper<n,<_io.BytesIO")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        stream.nothing
    parent = common.StreamWrapper(io.BytesIO())
    child = common.StreamWrapper(io.BytesIO(), parent_stream=parent)
    parent.autoclose()
    assert not parent.closed
    common.StreamWrapper.close_streams([{"x": child}])
    assert child.closed and parent.closed


def test_arguments():
    assert common.match_masks("a/b.txt", "*.txt") and common.match_masks("a", [])
    assert not common.match_masks("a", ["b"])
    common.validate_input_col(lambda a: a, 0)
    with pytest.raises(ValueError, match="takes 1 parameters, but 2 are required"):
        common.validate_input_col(lambda a: a, [0, 1])
    with pytest.raises(TypeError, match="callable function is expected"):
        common._check_unpickable_fn(3)
    with pytest.raises(TypeError, match="pathname binary data should be tuple"):
        common.validate_pathname_binary_tuple(3)


def test_steps_have_modules_of_their_own():
    assert isinstance(IterableWrapper([1]).shuffle(), ShufflerIterDataPipe)
    assert MapperMapDataPipe.__name__ == "MapperMapDataPipe"
