"""Streams that close themselves, masks and checks of functions."""

import io

import pytest

from flambeau.utils.data.datapipes.utils import common


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
