"""Archives are what `zipfile` reads, large ones too."""
import io
import zipfile

import pytest

from flambeau._serialization.zip_writer import ZipWriter


def entries():
    return {"a/data": b"x" * 100, "a/leer": b"", "a/ü": b"yz", "b": bytes(range(256)) * 9}


def written(file, alignment=64):
    writer = ZipWriter(file, alignment)
    for name, data in entries().items():
        writer.write(name, data)
    writer.finish()


@pytest.mark.parametrize("alignment", [1, 64, 4096])
def test_is_read(alignment):
    file = io.BytesIO()
    written(file, alignment)
    archive = zipfile.ZipFile(file)
    assert archive.testzip() is None
    assert {name: archive.read(name) for name in archive.namelist()} == entries()
    for info in archive.infolist():
        begin = file.getvalue().index(archive.read(info), info.header_offset + 30)
        assert begin % alignment == 0 or info.file_size == 0


def test_with_fields_of_64_bits(monkeypatch):
    monkeypatch.setattr("flambeau._serialization.zip_writer._MOST", 91)
    file = io.BytesIO()
    writer = ZipWriter(file, 64)
    writer.write("large", bytes(100))
    writer.write("small", b"12")
    writer.finish()
    data = file.getvalue()      # the marks of large fields, as zipfile knows them
    monkeypatch.undo()
    data = data.replace((91).to_bytes(4, "little"), b"\xff" * 4)
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.read("large") == bytes(100) and archive.read("small") == b"12"


def test_streams_that_cannot_seek():
    class Stream(io.RawIOBase):
        data = b""

        def writable(self):
            return True

        def write(self, data):
            self.data += bytes(data)
            return len(data)

    stream = Stream()
    written(stream)
    assert zipfile.ZipFile(io.BytesIO(stream.data)).testzip() is None
