"""The files that TensorBoard reads: records, each with its length and checksums (TFRecord)."""
from __future__ import annotations

import struct
from functools import cache
from typing import Any

_POLYNOMIAL = 0x82F63B78                        # Castagnoli's, with its bits in reverse


@cache
def _table() -> tuple[int, ...]:
    """The remainder of each byte."""
    rows = []
    for row in range(256):
        for _ in range(8):
            row = row >> 1 ^ (_POLYNOMIAL if row & 1 else 0)
        rows.append(row)
    return tuple(rows)


def crc32c(data: bytes) -> int:
    """The checksum CRC-32C.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    """The checksum in the form in which files hold it: one of a checksum would be no good."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


class RecordWriter:
    """Writes records to a file that is open for writing bytes.

    >>> import io
    >>> file = io.BytesIO()
    >>> RecordWriter(file).write(b"an event")
    >>> len(file.getvalue())                # the length and its checksum, the data and theirs
    24
    """

    def __init__(self, writer: Any):
        self._writer = writer

    def write(self, data: bytes) -> None:
        """Append a record."""
        length = struct.pack("<Q", len(data))
        self._writer.write(length + _masked(length) + data + _masked(data))

    def flush(self) -> None:
        """Write what is buffered."""
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    @property
    def closed(self) -> bool:
        """Is the file closed?"""
        return self._writer.closed


__all__ = ["RecordWriter", "crc32c"]
