"""What is read from streams."""
import io

from flambeau.utils.data.datapipes.iter import FileLister, FileOpener, IterableWrapper, StreamReader


def test_whole_streams_and_chunks():
    pairs = lambda: IterableWrapper([("p", io.BytesIO(b"abcde"))], deepcopy=False)
    assert list(StreamReader(pairs())) == [("p", b"abcde")]
    assert list(pairs().read_from_stream(chunk=2)) == [("p", b"ab"), ("p", b"cd"), ("p", b"e")]


def test_files(tmp_path):
    (tmp_path / "a.txt").write_text("hi")
    pipe = StreamReader(FileOpener(FileLister(str(tmp_path)), mode="t"))
    assert list(pipe) == [(str(tmp_path / "a.txt"), "hi")]
