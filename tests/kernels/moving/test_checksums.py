"""Checksums beside zlib's."""
import zlib

import numpy as np

from flambeau.kernels.moving.checksums import crc32


def test_of_all_lengths_and_places():
    data = np.random.default_rng(0).bytes(5000)
    for n in (*range(150), 1000, 4097):
        for start in (0, 1, 7):
            part = memoryview(data)[start:start + n]
            for value in (0, 1, 0xFFFFFFFF):
                assert crc32(part, value) == zlib.crc32(part, value)


def test_goes_on():
    data = np.random.default_rng(1).bytes(1000)
    assert crc32(data[300:], crc32(data[:300])) == zlib.crc32(data)
