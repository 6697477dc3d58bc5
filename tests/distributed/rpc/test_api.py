"""Calls between two and three processes; values and words from PyTorch."""
from __future__ import annotations

import gc
import pickle
import threading
import time

import pytest

import flambeau as torch
from flambeau.distributed import rpc
from flambeau.distributed.elastic.utils.distributed import get_free_port
from flambeau.distributed.rpc import api


def start(rank, port, size=2, **options):
    rpc._init_counter = 0           # these workers have not all been in all groups before
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=size,
                 rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
                     init_method=f"tcp://localhost:{port}", **options))


@pytest.fixture
def port():
    return get_free_port()


def add(a, b, c=0):
    return a + b + c


def fail(number):
    if number == 0:
        raise ValueError("bad")
    raise Awkward(1, 2)


class Awkward(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def sleep(seconds):
    time.sleep(seconds)
    return seconds


@rpc.functions.async_execution
def add_elsewhere(to, a, b):
    return rpc.rpc_async(to, add, args=(a, b)).then(lambda done: done.wait() + 100)


@rpc.functions.async_execution
def no_future():
    return 3


class Counter:
    def __init__(self, value):
        self.value = value

    def get(self, more=0):
        return self.value + more

    @rpc.functions.async_execution
    def add_at(self, to, more):
        return rpc.rpc_async(to, add, args=(self.value, more))


def raised(function, kind):
    try:                        # what pytest.raises gives holds the frames, and so references
        function()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


# Calls --------------------------------------------------------------------------------------


def check_calls(rank, port):
    start(rank, port)
    if rank == 0:
        other = rpc.get_worker_info("w1")
        assert repr(other) == "WorkerInfo(id=1, name=w1)" and rpc.get_worker_info().id == 0
        for to in ("w1", 1, other, "w0"):
            assert rpc.rpc_sync(to, add, args=(1, 2), kwargs={"c": 3}) == 6
        x = torch.arange(6.).reshape(2, 3).t()
        assert rpc.rpc_sync("w1", torch.add, args=(x, 1)).equal(x + 1)
        for value in (torch.tensor(3, dtype=torch.bfloat16), torch.zeros(0, 2),
                      torch.tensor([True, False]), torch.tensor([1 + 2j])):
            back = rpc.rpc_sync("w1", torch.clone, args=(value,))
            assert back.dtype == value.dtype and back.equal(value)
        futures = [rpc.rpc_async("w1", add, args=(i, 1)) for i in range(20)]
        assert [future.wait() for future in futures] == list(range(1, 21))
        assert rpc.rpc_sync("w1", add_elsewhere, args=("w0", 1, 2)) == 103
        assert rpc.rpc_sync("w1", rpc.get_worker_info) == other
    rpc.shutdown()
    assert not rpc._is_current_rpc_agent_set()


def check_errors(rank, port):
    if rank == 0:
        first = "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first."
        for function in (rpc.get_worker_info, rpc.shutdown):
            assert raised(function, RuntimeError) == first
        assert raised(lambda: rpc.RRef(3), RuntimeError).startswith("Current RPC agent is not set")
        assert "must be a member of BackendType" in raised(
            lambda: rpc.init_rpc("a", backend="x"), TypeError)
    start(rank, port)
    if rank == 0:
        def call(*args, **kwargs):
            return lambda: rpc.rpc_sync(*args, **kwargs)
        assert raised(lambda: rpc.init_rpc("w0", rank=0, world_size=2),
                      RuntimeError) == "RPC is already initialized"
        assert raised(call("zz", add), RuntimeError) == \
            "name:w0,rank:0 could not find destination name zz"
        assert raised(call(7, add), RuntimeError) == \
            "name:w0,rank:0 could not find destination id 7"
        assert raised(call(1.5, add), ValueError) == "Cannot get WorkerInfo from name 1.5"
        assert raised(call("w1", 3), TypeError) == "function should be callable."
        raised(call("w1", lambda: 3), (AttributeError, pickle.PicklingError))
        words = raised(call("w1", fail, args=(0,)), ValueError)
        assert words.startswith("On WorkerInfo(id=1, name=w1):\nValueError('bad')\nTraceback")
        assert "Failed to create original exception type. Error msg was " in raised(
            call("w1", fail, args=(1,)), RuntimeError)
        assert "must match the size of tensor b" in raised(
            call("w1", torch.add, args=(torch.ones(2), torch.ones(3))), RuntimeError)
        assert raised(call("w1", sleep, args=(0.5,), timeout=0.05), RuntimeError) == (
            "RPCErr:1:RPC ran for more than set timeout (50 ms) and will now be marked with an "
            "error")
        assert "must return a torch.futures.Future object, but got builtins.int" in raised(
            call("w1", no_future), RuntimeError)
        failed = rpc.remote("w1", fail, args=(0,))
        for _ in range(2):
            assert raised(failed.to_here, ValueError).count("On WorkerInfo") == 1
    rpc.shutdown()


def is_confirmed(reference):
    return reference.confirmed_by_owner()


def check_what_travels(rank, port):
    start(rank, port, 3)
    if rank == 0:
        x = torch.arange(6.).reshape(2, 3)
        for view in (x.t(), x[:, 1:]):
            back = rpc.rpc_sync("w1", torch.nn.Identity(), args=(view,))
            assert back.equal(view) and back.stride() == view.stride()
        ones = (torch.ones(2, 2),) * 3
        assert rpc.rpc_sync("w1", torch.linalg.multi_dot, args=(ones,)).tolist() == [[4, 4]] * 2
        reference = rpc.remote("w2", add, args=(1, 2))
        assert rpc.rpc_sync("w1", is_confirmed, args=(reference,))
        assert reference._get_type(blocking=False) is reference._get_type(blocking=False)
        assert "Can not pickle torch.futures.Future" in raised(
            lambda: rpc.rpc_sync("w1", add, args=(torch.futures.Future(), 1)), RuntimeError)
        late = rpc.remote("w1", sleep, args=(0.2,), timeout=0.01)
        raised(late._get_future().wait, RuntimeError)
        assert "RRef creation via rpc.remote() timed out" in raised(late.to_here, RuntimeError)
    rpc.shutdown()
    if rank == 0:
        assert "Cannot call to_here() on it after deletion." in raised(
            reference.to_here, RuntimeError)


def check_names(rank, port):
    assert "RPC worker name same is not unique" in raised(lambda: rpc.init_rpc(
        "same", rank=rank, world_size=2, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
            init_method=f"tcp://localhost:{port}")), RuntimeError)
    for name in ("", "a*", "a" * 128):
        assert "must match ^[A-Za-z0-9-_:]*$, and must be non-empty and shorter than 128" in \
            raised(lambda name=name: rpc.WorkerInfo(name, 0), RuntimeError)


def check_first_failure(rank, port):
    start(rank, port)
    if rank == 0:
        begun = time.monotonic()
        assert "bad" in raised(lambda: torch.futures.wait_all(
            [rpc.rpc_async("w1", sleep, args=(1,)), rpc.rpc_async("w1", fail, args=(0,))]),
            ValueError)
        assert time.monotonic() - begun < 0.9
    rpc.shutdown()


def check_gathering(rank, port):
    start(rank, port, 3)
    assert api._all_gather(rank) == {"w0": 0, "w1": 1, "w2": 2}
    if rank < 2:
        assert api._all_gather(rank, {"w0", "w1"}) == {"w0": 0, "w1": 1}
    with api._wait_all():
        future = rpc.rpc_async(f"w{(rank + 1) % 3}", sleep, args=(0.05,))
    assert future.done()
    rpc.shutdown()


def test_calls(processes, port):
    processes(check_calls, port, group=False)


def test_errors(processes, port):
    processes(check_errors, port, group=False)


def test_what_travels(processes, port):
    processes(check_what_travels, port, size=3, group=False)


def test_names_are_unique(processes, port):
    processes(check_names, port, group=False)


def test_the_first_failure_of_several_ends_the_wait(processes, port):
    processes(check_first_failure, port, group=False)


def test_gathering(processes, port):
    processes(check_gathering, port, size=3, group=False)


# References ---------------------------------------------------------------------------------


def add_one(reference):
    return reference.to_here() + 1


def owned(reference):
    return reference.is_owner(), reference.local_value()


def make(value):
    return rpc.RRef(value)


def pass_on(reference, to):
    return rpc.rpc_sync(to, add_one, args=(reference,))


def wait_until(condition):
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


def kept():
    return int(rpc._rref_context_get_debug_info()["num_owner_rrefs"])


def check_references(rank, port):
    gc.disable()
    start(rank, port, 3)
    if rank == 0:
        x = rpc.remote("w1", add, args=(torch.ones(2), 1))
        assert x.to_here().equal(torch.full((2,), 2.)) and x.confirmed_by_owner()
        assert repr(x) == ("UserRRef(RRefId = GloballyUniqueId(created_on=0, local_id=0), ForkId = "
                           "GloballyUniqueId(created_on=0, local_id=1))")
        assert (x.owner_name(), x.is_owner(), x._get_type()) == ("w1", False, torch.Tensor)
        assert "can't call localValue() on user WorkerInfo(id=0, name=w0)" in raised(
            x.local_value, RuntimeError)
        assert rpc.rpc_sync("w1", owned, args=(x,))[0] is True
        assert rpc.rpc_sync("w2", add_one, args=(x,)).equal(torch.full((2,), 3.))
        assert rpc.rpc_sync("w2", pass_on, args=(x, "w1")).equal(torch.full((2,), 3.))
        here = rpc.RRef(5)
        assert here.is_owner() and here.to_here() == here.local_value() == 5
        assert rpc.rpc_sync("w1", pass_on, args=(here, "w2")) == 6
        assert rpc.rpc_sync("w1", make, args=(3,)).to_here() == 3
        assert rpc.remote("w1", make, args=(3,)).to_here().to_here() == 3
        assert rpc.remote("w0", add, args=(1, 1)).to_here() == 2
        assert rpc.remote("w1", add_elsewhere, args=("w0", 1, 2)).to_here() == 103
        counter = rpc.remote("w1", Counter, args=(10,))
        assert counter.rpc_sync().get(1) == 11 and counter.remote().get().to_here() == 10
        assert counter.rpc_async().get(more=2).wait() == 12
        assert counter.rpc_sync().add_at("w2", 5) == 15
        assert "has no attribute 'nope'" in raised(lambda: counter.rpc_sync().nope(),
                                                   AttributeError)
        assert "rref can only be pickled when using RPC" in raised(lambda: pickle.dumps(x),
                                                                   RuntimeError)
        # what nobody refers to any more is dropped by its owner; no collector is needed
        assert rpc.rpc_sync("w1", kept) >= 2
        del x, counter
        wait_until(lambda: rpc.rpc_sync("w1", kept) == 0)
        wait_until(lambda: kept() == 0)
    rpc.shutdown()


def test_references(processes, port):
    processes(check_references, port, size=3, group=False)


# One process --------------------------------------------------------------------------------


@pytest.fixture
def alone(port):
    start(0, port, 1)
    yield
    if rpc._is_current_rpc_agent_set():
        rpc.shutdown()


def increase(x):
    x += 1


def test_values_are_copied(alone):
    x = torch.zeros(2)
    rpc.rpc_sync("w0", increase, args=(x,))
    assert x.equal(torch.zeros(2))


def test_threads_do_not_wait_for_each_other(alone):
    """More calls that wait for others than there are threads, when the functions are async."""
    futures = [rpc.rpc_async("w0", add_elsewhere, args=("w0", i, 0)) for i in range(40)]
    assert [future.wait() for future in futures] == [100 + i for i in range(40)]
    assert threading.active_count() < 40


def test_the_default_timeout(alone):
    assert rpc.get_rpc_timeout() == 60
    rpc._set_rpc_timeout(0.05)
    assert "set timeout (50 ms)" in raised(lambda: rpc.rpc_sync("w0", sleep, args=(0.3,)),
                                           RuntimeError)


@pytest.mark.parametrize("name", ["", "a b", "x" * 128, "é?"])
def test_names_of_workers(name, port):
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://localhost:{port}")
    with pytest.raises(RuntimeError, match="Worker name must match"):
        rpc.init_rpc(name, rank=0, world_size=1, rpc_backend_options=options)
