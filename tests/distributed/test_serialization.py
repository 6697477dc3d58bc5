"""States as streams."""
from __future__ import annotations

import io
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau.distributed._serialization import _streaming_load, _streaming_save


class Stream(io.RawIOBase):
    """Bytes that can be read once, from front to end."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, room):
        return self.data.readinto(room)

    def seek(self, *args):
        raise io.UnsupportedOperation("seek")


def sent(value):
    file = io.BytesIO()
    _streaming_save(value, file)
    return file.getvalue()


def there_and_back(value, **options):
    return _streaming_load(io.BufferedReader(Stream(sent(value))), **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool,
                                   torch.complex64])
def test_tensors(dtype):
    tensor = torch.arange(6).view(2, 3).to(dtype)
    found = there_and_back(tensor)
    assert found.dtype is dtype and torch.equal(found, tensor)
    assert torch.equal(there_and_back(tensor.t()), tensor.t())
    assert there_and_back(torch.ones(0, 3, dtype=dtype)).shape == (0, 3)


def test_states():
    weight = torch.ones(4)
    found = there_and_back(OrderedDict(a=weight, b=weight[1:3], c=[1, "x", None]))
    assert list(found) == ["a", "b", "c"] and found["c"] == [1, "x", None]
    found["a"][1] = 7                                   # memory stays shared
    assert found["b"].tolist() == [7, 1]


def test_several_in_a_row():
    stream = io.BufferedReader(Stream(sent(torch.ones(1)) + sent({"x": 2})))
    assert _streaming_load(stream).tolist() == [1] and _streaming_load(stream) == {"x": 2}


def test_what_is_not_weights():
    with pytest.raises(Exception, match=r"(?i)weights.only|unsupported"):
        there_and_back(Stream)


def test_a_stream_that_ends():
    with pytest.raises((EOFError, RuntimeError, ValueError, AssertionError)):
        _streaming_load(io.BytesIO(sent(torch.ones(100))[:-50]))
