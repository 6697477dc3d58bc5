"""Methods of a value, called where it is."""
from __future__ import annotations

import pytest

from flambeau.distributed.rpc import functions
from flambeau.distributed.rpc.rref_proxy import (
    RRefProxy,
    _local_invoke,
    _local_invoke_async_execution,
)


class Value:
    def add(self, a, b=1):
        return a + b

    @functions.async_execution
    def later(self):
        return "a future"


class Reference:
    def owner(self):
        return "w1"

    def local_value(self):
        return Value()

    def _get_type(self, timeout=-1.0, blocking=True):
        return Value


def api(to, function, args=(), timeout=None):
    return to, function, args, timeout


def test_calls():
    reference = Reference()
    proxy = RRefProxy(reference, api, 5)
    to, function, args, timeout = proxy.add(2, b=3)
    assert (to, function, timeout) == ("w1", _local_invoke, 5)
    assert args == (reference, "add", (2,), {"b": 3}) and function(*args) == 5
    assert RRefProxy(reference, api).add(1)[3] == -1.0          # that of the agent


def test_methods_that_answer_later():
    reference = Reference()
    _, function, args, _ = RRefProxy(reference, api).later()
    assert function is _local_invoke_async_execution and function(*args) == "a future"


def test_methods_that_are_none():
    with pytest.raises(AttributeError):
        RRefProxy(Reference(), api).no_such()
