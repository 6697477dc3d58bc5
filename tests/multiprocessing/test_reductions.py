"""Tensors in memory that several processes see."""

import glob
import multiprocessing
import os
import pickle
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler

import pytest

import flambeau
from flambeau import multiprocessing as mp
from flambeau import nn


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)
    assert not glob.glob(f"/dev/shm/torch_{os.getpid()}_*")


def sent(value):
    return pickle.loads(bytes(ForkingPickler.dumps(value)))


def test_share_memory_moves_all_views(strategy):
    x = flambeau.zeros(3, 4)
    row, turned, alias, array = x[1], x.t(), x.detach(), x.numpy()
    assert not x.is_shared() and not x.untyped_storage().is_shared()
    assert x.share_memory_() is x
    assert all(t.is_shared() for t in (x, row, turned, alias, x[0], x.storage()))
    assert not x.clone().is_shared()
    row += 1
    assert turned.sum() == alias.sum() == 4 and x._version == 1
    assert array.sum() == 0             # what is not a tensor stays where it was


def test_storages_are_shared():
    assert flambeau.zeros(0).share_memory_().is_shared()
    storage = flambeau.UntypedStorage([1, 2])
    assert storage.share_memory_() is storage and storage.is_shared()
    assert storage.tolist() == [1, 2] and storage.filename is None
    assert flambeau.FloatStorage([1.0]).share_memory_().is_shared()
    assert len(flambeau.UntypedStorage._new_shared(5)) == 5
    with pytest.raises(RuntimeError, match="_share_fd_: only available on CPU"):
        flambeau.zeros(2, device="meta").share_memory_()


def test_file_is_shared(tmp_path):
    x = flambeau.from_file(str(tmp_path / "f"), shared=True, size=3)
    assert x.is_shared() and x.untyped_storage().filename == str(tmp_path / "f")


def test_modules_are_shared():
    layer = nn.BatchNorm1d(3)
    assert layer.share_memory() is layer
    assert all(t.is_shared() for t in layer.state_dict().values())
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized parameter"):
        nn.LazyLinear(2).share_memory()


@pytest.mark.parametrize("make", [
    lambda: flambeau.arange(6.0).reshape(2, 3).t()[1:],
    lambda: flambeau.ones(2, dtype=flambeau.bfloat16, requires_grad=True),
    lambda: nn.Parameter(flambeau.ones(2), requires_grad=False),
    lambda: flambeau.eye(2).to_sparse(),
    lambda: flambeau.eye(2).to_sparse_csr(),
    lambda: flambeau.ones(2, 3, device="meta"),
    lambda: nn.Parameter(flambeau.ones(3, device="meta")),
    lambda: flambeau.ones(0, 3),
    lambda: flambeau.tensor([1j]).conj(),
    lambda: flambeau.quantize_per_tensor(flambeau.ones(2), 0.1, 0, flambeau.quint8),
    lambda: flambeau.FloatStorage([1, 2]),
])
def test_what_is_sent_is_the_same(strategy, make):
    value = make()
    again = sent(value)
    assert type(again) is type(value) and repr(again) == repr(value)
    if isinstance(value, flambeau.Tensor) and value.layout is flambeau.strided:
        assert again.stride() == value.stride()


def test_what_is_sent_shares_memory(strategy):
    x = flambeau.arange(6.0).reshape(2, 3)
    view = x[1]
    again, turned = sent((x, x.t()))
    assert x.is_shared() and again.is_shared()
    again[1, 0] = 9
    assert view[0] == turned[0, 1] == 9


def test_refused():
    x = flambeau.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(x * 2)
    x.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match=r"backward hook .* on tensor will not be serialized"):
        sent(x)
    with pytest.raises(AssertionError, match=r"^invalid sharing strategy 'x', expected one of"):
        mp.set_sharing_strategy("x")


def child(x, layer, inbox, outbox):
    x += 1
    with flambeau.no_grad():
        layer.weight.fill_(3)
    y = inbox.get()
    y[0] = 100
    outbox.put((y, flambeau.full((2,), 7.0), nn.Parameter(flambeau.ones(1))))
    inbox.get()                         # the memory is needed until it has arrived


def test_between_processes(strategy):
    context = multiprocessing.get_context("fork")
    x, y = flambeau.zeros(3).share_memory_(), flambeau.arange(4.0)
    layer, view = nn.Linear(1, 1).share_memory(), y[:2]
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(x, layer, inbox, outbox))
    process.start()
    inbox.put(y)
    back, made, parameter = outbox.get(timeout=60)
    inbox.put(None)
    process.join()
    assert process.exitcode == 0
    assert x.tolist() == [1, 1, 1] and layer.weight.item() == 3
    assert view[0] == 100 and back.data_ptr() == y.data_ptr()
    assert made.tolist() == [7, 7] and made.is_shared()
    assert type(parameter) is nn.Parameter


SCRIPT = """
import glob, os, sys
import flambeau
from flambeau import multiprocessing as mp

def add(i, x):
    x[i] += 1

def fail(i):
    raise ValueError(f"number {i}")

def leave(i):
    sys.exit(3)

if __name__ == "__main__":
    for strategy in ("file_descriptor", "file_system"):
        mp.set_sharing_strategy(strategy)
        for method in ("spawn", "forkserver"):
            x = flambeau.zeros(2)
            mp.start_processes(add, (x,), 2, start_method=method)
            print(method, x)
        del x
    print(glob.glob(f"/dev/shm/torch_{os.getpid()}_*"))
    for function in (fail, leave):
        try:
            mp.spawn(function, nprocs=1)
        except Exception as error:
            print(type(error).__name__, error, error.error_index)
"""


def test_processes_that_are_spawned(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True,
                          timeout=120)
    lines = done.stdout.splitlines()
    each = [f"{method} tensor([1., 1.])" for method in ("spawn", "forkserver")]
    assert lines[:5] == [*each, *each, "[]"], done.stderr
    assert "-- Process 0 terminated with the following error:" in done.stdout
    assert "ValueError: number 0" in done.stdout
    assert lines[-1] == "ProcessExitedException process 0 terminated with exit code 3 0"
