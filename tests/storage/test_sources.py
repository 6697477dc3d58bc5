"""Storages from buffers and files: what PyTorch says, and the bytes."""
import struct

import pytest

import flambeau
from flambeau import UntypedStorage


def test_parts_of_a_buffer_in_both_orders():
    buffer = struct.pack(">4i", 1, 2, 3, 4)
    storage = UntypedStorage.from_buffer(buffer, "big", 2, 4, dtype=flambeau.int32)
    found = flambeau.empty(0, dtype=flambeau.int32).set_(storage, 0, (2,), (1,))
    assert found.tolist() == [2, 3]
    assert UntypedStorage.from_buffer(buffer, dtype=flambeau.uint8).tolist() == list(buffer)
    assert UntypedStorage.from_buffer(buffer, "any", 3, dtype=flambeau.uint8).tolist() == [0, 0, 0]


def test_the_dtype_of_a_typed_class_is_its_own():
    with pytest.raises(RuntimeError, match="'dtype' can only be specified in UntypedStorage"):
        flambeau.FloatStorage.from_buffer(b"abcd", "big", dtype=flambeau.int32)


def test_files_are_mapped(tmp_path):
    path = tmp_path / "f"
    with pytest.raises(RuntimeError, match=r"unable to open file <.*f> in read-only mode: No such "
                                           r"file or directory \(2\)"):
        UntypedStorage.from_file(str(path), False, 1)
    assert UntypedStorage.from_file(str(path)).nbytes() == 0        # nothing is looked for
    path.write_bytes(b"abcd")
    with pytest.raises(RuntimeError, match="size <4> is smaller than the required mapping size <8>"
                       ):
        UntypedStorage.from_file(str(path), False, 8)
    UntypedStorage.from_file(str(path), True, 4)[0] = 98
    assert path.read_bytes() == b"bbcd"
