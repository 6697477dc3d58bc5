"""References to values of other processes."""
from __future__ import annotations

import pickle

import pytest

import flambeau as torch
from flambeau.distributed import rpc
from flambeau.distributed.elastic.utils.distributed import get_free_port


@pytest.fixture
def alone():
    rpc.init_rpc("w0", rank=0, world_size=1, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
        init_method=f"tcp://localhost:{get_free_port()}"))
    yield
    rpc.shutdown()


class Counter:
    def __init__(self, value):
        self.value = value

    def add(self, more=1):
        self.value += more
        return self.value


def fail():
    raise ValueError("bad")


def test_a_value_of_this_process(alone):
    value = Counter(3)
    x = rpc.RRef(value)
    assert x.is_owner() and x.confirmed_by_owner() and x.owner_name() == "w0"
    assert x.to_here() is x.local_value() is value
    assert x.owner() == rpc.get_worker_info() and x._get_type() is Counter
    assert str(x) == repr(x) and str(x).startswith("OwnerRRef(GloballyUniqueId(created_on=0, local")
    with pytest.raises(RuntimeError, match="rref can only be pickled when using RPC"):
        pickle.dumps(x)


def test_methods_where_the_value_is(alone):
    x = rpc.remote("w0", Counter, args=(1,))
    assert x.rpc_sync().add() == 2 and x.rpc_async().add(more=2).wait() == 4
    assert x.remote().add(3).to_here() == 7 and x.to_here().value == 7
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        x.rpc_sync().nope()


def test_a_failure_is_raised_by_who_asks(alone):
    x = rpc.remote("w0", fail)
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            x.to_here()


def test_gradients(alone):
    x = torch.ones(2, requires_grad=True)
    rpc.RRef((x * 3).sum()).backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="RRef should contain a tensor for"):
        rpc.RRef("x").backward()


def test_numbers_about_references(alone):
    before = rpc._rref_context_get_debug_info()
    assert set(before) == {"num_owner_rrefs", "num_pending_futures", "num_pending_users",
                           "num_forks"}
    assert before["num_owner_rrefs"] == before["num_forks"] == "0"


def test_rpc_is_needed():
    with pytest.raises(RuntimeError, match="Current RPC agent is not set"):
        rpc.RRef(3)


def test_a_fork_that_is_dropped_before_its_owner_knows_of_it_leaves_nothing(monkeypatch):
    """News of the same fork may arrive in either order."""
    from flambeau.distributed.rpc import rref
    context = rref._Context()
    monkeypatch.setattr(rref, "_context", context)
    value, first, second = object(), object(), object()
    rref._add_fork(value, first)
    rref._delete_fork(value, second)
    rref._add_fork(value, second)
    assert context.forks == {value: {first}} and value in context.owned
    rref._delete_fork(value, first)
    assert not context.forks and not context.owned and not context.dropped_early
