"""CRC-32, the checksum of zip archives, of memory as fast as it is read."""

import zlib

from flambeau.kernels._extension import native


def crc32(data, value=0):
    """The checksum of contiguous memory, which goes on from `value`; as `zlib.crc32`."""
    found = None if native is None else native.crc32(data, value)
    return zlib.crc32(data, value) if found is None else found
