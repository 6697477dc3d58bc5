"""Values as bytes."""
from __future__ import annotations

import io

import pytest

from flambeau.distributed._c10d.stores.encoding import encode, receive


@pytest.mark.parametrize("value", [
    None, True, False, 0, -7, 10 ** 30, 1.5, float("inf"), "", "é\0", b"", b"\x00\xff", [],
    [1, [None, "x", [b"y"]], 2.5]])
def test_there_and_back(value):
    found = receive(io.BytesIO(encode(value)))
    assert found == value and type(found) is type(value)


def test_one_after_the_other():
    stream = io.BytesIO(encode(1) + encode(("a", "b")))
    assert receive(stream) == 1 and receive(stream) == ["a", "b"]
    with pytest.raises(EOFError):
        receive(stream)


def test_a_head_that_is_cut():
    with pytest.raises(EOFError):
        receive(io.BytesIO(encode(1)[:3]))
