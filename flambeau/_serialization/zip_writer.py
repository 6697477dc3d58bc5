"""Zip archives of uncompressed entries, as checkpoints are.

`zipfile` writes them too, but goes back to each header when it knows what followed; here entries
are known when they are written, so that a file is written from its beginning to its end.
"""
from __future__ import annotations

import struct
from typing import Any, NamedTuple

from flambeau.kernels.moving.checksums import crc32

_MOST = 0xFFFFFFFF      # that a field holds; it stands for "see the extra field" too
_DAY = 1 << 5 | 1       # the first of January 1980
_UNIX, _MODE = 3 << 8, 0o600 << 16


class _Entry(NamedTuple):
    name: bytes
    checksum: int
    size: int
    offset: int

    @property
    def version(self) -> int:
        """Of the format, that a reader must know."""
        return 45 if max(self.size, self.offset) >= _MOST else 20

    def fields(self, extra: int) -> bytes:
        """What both headers of an entry say of it, for an extra field of that length."""
        size, flags = min(self.size, _MOST), 0 if self.name.isascii() else 0x800
        return struct.pack("<HHHHHIIIHH", self.version, flags, 0, 0, _DAY, self.checksum, size,
                           size, len(self.name), extra)


class ZipWriter:
    """Writes entries into a file, each with its data at a multiple of `alignment` bytes.

    >>> import io, zipfile
    >>> file = io.BytesIO()
    >>> writer = ZipWriter(file, 64)
    >>> writer.write("a", b"data")
    2918445923
    >>> writer.finish()
    >>> zipfile.ZipFile(file).read("a")
    b'data'
    """

    def __init__(self, file: Any, alignment: int) -> None:
        self.file, self.alignment = file, alignment
        self.entries: list[_Entry] = []
        try:
            self.at = file.tell()
        except (AttributeError, OSError):
            self.at = 0

    def write(self, name: str, data: Any) -> int:
        """Write an entry; returns its checksum."""
        data = memoryview(data).cast("B")
        entry = _Entry(name.encode(), crc32(data), data.nbytes, self.at)
        sizes = b""
        if entry.size >= _MOST:
            sizes = struct.pack("<HHQQ", 1, 16, entry.size, entry.size)
        padding = -(self.at + 30 + len(entry.name) + len(sizes) + 4) % self.alignment
        extra = sizes + struct.pack("<HH", 0x4246, padding) + b"Z" * padding
        self._put(b"PK\3\4" + entry.fields(len(extra)) + entry.name + extra)
        self._put(data)
        self.entries.append(entry)
        return entry.checksum

    def finish(self) -> None:
        """Write the list of entries."""
        start = self.at
        self._put(b"".join(map(_listed, self.entries)))
        count, size = len(self.entries), self.at - start
        if count >= 0xFFFF or self.at >= _MOST:
            end = self.at
            self._put(struct.pack("<4sQHHIIQQQQ4sIQI", b"PK\6\6", 44, 45, 45, 0, 0, count, count,
                                  size, start, b"PK\6\7", 0, end, 1))
        self._put(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, min(count, 0xFFFF),
                              min(count, 0xFFFF), min(size, _MOST), min(start, _MOST), 0))
        if hasattr(self.file, "flush"):
            self.file.flush()

    def _put(self, data: Any) -> None:
        self.file.write(data)
        self.at += len(data)


def _listed(entry: _Entry) -> bytes:
    """An entry in the list at the end."""
    large = [entry.size] * 2 * (entry.size >= _MOST) + [entry.offset] * (entry.offset >= _MOST)
    extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    return b"".join((
        b"PK\1\2", struct.pack("<H", _UNIX | entry.version), entry.fields(len(extra)),
        struct.pack("<HHHII", 0, 0, 0, _MODE, min(entry.offset, _MOST)), entry.name, extra))
