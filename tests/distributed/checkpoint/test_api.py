"""Errors of several processes."""
from __future__ import annotations

import pickle

import pytest

from flambeau.distributed.checkpoint import CheckpointException
from flambeau.distributed.checkpoint.api import _is_wrapped_exception, _wrap_exception


def raised(error):
    try:
        raise error
    except BaseException as found:
        return _wrap_exception(found)


def test_errors_travel():
    error, trace = wrapped = raised(ValueError("bad"))
    assert isinstance(error, ValueError) and trace[-1].name == "raised"
    again, summary = pickle.loads(pickle.dumps(wrapped))
    assert str(again) == "bad" and summary[-1].name == "raised"


def test_what_is_an_error():
    assert _is_wrapped_exception(raised(KeyError("x")))
    for other in (None, 3, (), (1,), (1, 2), (1, 2, 3), [KeyError("x"), None]):
        assert not _is_wrapped_exception(other)


def test_all_are_named():
    error = CheckpointException("read", {1: raised(ValueError("bad")), 3: raised(KeyError("x"))})
    assert sorted(error.failures) == [1, 3] and isinstance(error, BaseException)
    text = str(error)
    assert text.startswith("CheckpointException ranks:dict_keys([1, 3])\n")
    assert "Traceback (most recent call last): (RANK 1)" in text and "ValueError: bad" in text
    assert "(RANK 3)" in text and "in raised" in text
    with pytest.raises(CheckpointException):
        raise error
