"""Calls as bytes."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.rpc import internal
from flambeau.distributed.rpc.internal import (
    PythonUDF,
    RemoteException,
    RPCExecMode,
    _build_rpc_profiling_key,
    _handle_exception,
    deserialize,
    serialize,
)


def twice(x):
    return 2 * x


def test_there_and_back():
    weight = torch.ones(2, requires_grad=True)
    call = PythonUDF(twice, (weight, {"a": [1, weight[:1]]}), {"k": (None, "x")})
    data, tensors = serialize(call)
    assert len(tensors) == 2 and tensors[0] is weight
    found = deserialize(data, tensors)
    assert found.func is twice and found.args[0] is weight and found.kwargs == {"k": (None, "x")}
    assert b"ones" not in data and len(data) < 2000


def test_classes_and_ops_have_names():
    for value in (torch.add, torch.Tensor, torch.nn.Linear, torch.float32, twice):
        data, tensors = serialize(value)
        assert deserialize(data, tensors) is value and tensors == []


def test_what_the_other_does_not_have():
    data, tensors = serialize(twice)
    found = deserialize(data.replace(b"twice", b"thrce"), tensors)
    assert isinstance(found, AttributeError)
    assert "Default RPC pickler does not serialize" in str(found)


def test_classes_of_the_user():
    class Own:
        pass
    pickler = internal._InternalRPCPickler()
    pickler._register_reducer(Own, lambda own: (int, (7,)))
    pickler._register_reducer(Own, lambda own: (int, (8,)))         # the first stays
    assert pickler.deserialize(*pickler.serialize([Own()])) == [7]


def test_errors():
    _handle_exception(3)
    with pytest.raises(ValueError, match="On w1:\nbad"):
        _handle_exception(RemoteException("On w1:\\nbad", ValueError))
    with pytest.raises(RuntimeError, match=r"Failed to create original exception type\."):
        _handle_exception(RemoteException("bad", UnicodeDecodeError))


@pytest.mark.parametrize("mode", list(RPCExecMode))
def test_names_in_profiles(mode):
    assert _build_rpc_profiling_key(mode, "add", "w0", "w1") == f"rpc_{mode.value}#add(w0 -> w1)"
    assert [mode.value for mode in RPCExecMode] == ["sync", "async", "async_jit", "remote"]
