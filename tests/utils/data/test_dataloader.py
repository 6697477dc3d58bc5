"""The data loader, in this process and with workers."""

import ctypes
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    dataloader,
    get_worker_info,
)
from flambeau.utils.data._utils import transfer


class Numbers(Dataset):
    def __init__(self, item=lambda i: i):
        self.item = item

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return self.item(i)


class Share(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, 10, info.num_workers) if info else range(10))

    def __len__(self):
        return 4


def lists(loader):
    return [batch.tolist() for batch in loader]


def at_five(error):
    def item(i):
        if i == 5:
            raise error
        return i
    return item


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


# What PyTorch 2.13 gives under manual_seed(1): an epoch, a rand, an epoch, a rand.
ORDER = [
    ({}, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]], 0.40306925773620605,
     [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]], 0.7998586297035217),
    ({"shuffle": True}, [[4, 2, 0], [6, 8, 7], [9, 1, 5], [3]], 0.029281556606292725,
     [[1, 3, 6], [9, 4, 7], [2, 0, 8], [5]], 0.4387779235839844),
    ({"shuffle": True, "num_workers": 2}, [[4, 2, 0], [6, 8, 7], [9, 1, 5], [3]],
     0.029281556606292725, [[1, 3, 6], [9, 4, 7], [2, 0, 8], [5]], 0.4387779235839844),
    ({"shuffle": True, "num_workers": 2, "persistent_workers": True},
     [[4, 2, 0], [6, 8, 7], [9, 1, 5], [3]], 0.029281556606292725,
     [[7, 9, 4], [0, 5, 1], [8, 6, 2], [3]], 0.7543719410896301),
]


@pytest.mark.parametrize("options, first, then, second, last", ORDER)
def test_order_is_pytorchs(options, first, then, second, last):
    torch.manual_seed(1)
    loader = DataLoader(Numbers(), batch_size=3, **options)
    assert lists(loader) == first
    assert torch.rand(1).item() == then
    assert lists(loader) == second
    assert torch.rand(1).item() == last


def test_order_with_a_generator():
    loader = DataLoader(Numbers(), batch_size=3, shuffle=True,
                        generator=torch.Generator().manual_seed(5))
    assert lists(loader) == [[7, 4, 8], [1, 2, 3], [6, 5, 9], [0]]
    assert lists(loader) == [[2, 1, 6], [3, 5, 9], [4, 7, 8], [0]]


def test_tensor_dataset_is_sliced_as_it_would_be_stacked():
    x, y = torch.randn(7, 2, 3), torch.arange(7)
    for batch in DataLoader(TensorDataset(x, y), batch_size=3, sampler=[2, 6, 0, 3]):
        assert type(batch) is list
        for rows, i in zip(batch[0], batch[1].tolist(), strict=True):
            assert torch.equal(rows, x[i])
    w = torch.ones(3, 2, requires_grad=True)
    batch, = next(iter(DataLoader(TensorDataset(w), batch_size=2)))
    batch.sum().backward()
    assert w.grad.tolist() == [[1, 1], [1, 1], [0, 0]]


def test_lengths():
    assert len(DataLoader(Numbers(), batch_size=3)) == 4
    assert len(DataLoader(Numbers(), batch_size=3, drop_last=True)) == 3
    assert len(DataLoader(Numbers(), batch_size=None)) == 10
    assert len(DataLoader(Share(), batch_size=3)) == 2


def test_length_of_an_iterable_that_gives_more():
    loader = DataLoader(Share(), batch_size=None)
    len(loader)
    with pytest.warns(UserWarning, match="was reported to be 4.*but 5 samples have been fetched"):
        assert sum(1 for _ in iter(loader)) == 10


@pytest.mark.parametrize("workers", [0, 2])
def test_without_batches(workers):
    loader = DataLoader(Numbers(lambda i: {"i": i}), batch_size=None, num_workers=workers)
    assert list(loader) == [{"i": i} for i in range(10)]


def test_iterable_dataset_in_workers():
    loader = DataLoader(Share(), batch_size=2, num_workers=2)
    assert lists(loader) == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    loader = DataLoader(Share(), batch_size=2, num_workers=2, drop_last=True)
    assert lists(loader) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    loader = DataLoader(Share(), batch_size=2, num_workers=2, persistent_workers=True)
    assert lists(loader) == lists(loader)


def test_out_of_order():
    def item(i):
        time.sleep(0.3 if i == 0 else 0.0)
        return i
    loader = DataLoader(Numbers(item), num_workers=2, in_order=False)
    found = [batch.item() for batch in loader]
    assert sorted(found) == list(range(10)) and found[0] != 0


@pytest.mark.parametrize("shape", [(2,), (300, 300)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "bfloat16", "complex64"])
def test_tensors_come_from_workers_as_they_are(shape, dtype):
    """Small ones through the connection, large ones through shared memory."""
    dtype = getattr(torch, dtype)

    def item(i):
        return torch.full(shape, i % 2).to(dtype), "name", None
    loader = DataLoader(Numbers(item), batch_size=None, num_workers=1)
    for i, (tensor, name, nothing) in enumerate(loader):
        assert name == "name" and nothing is None
        assert tensor.dtype is dtype and tensor.shape == shape
        assert torch.equal(tensor, torch.full(shape, i % 2).to(dtype))
        tensor += tensor   # it may be written to


def test_gradients_do_not_cross_processes():
    leaf = DataLoader(Numbers(lambda i: torch.ones(1, requires_grad=True)), batch_size=None,
                      num_workers=1)
    assert next(iter(leaf)).requires_grad
    other = DataLoader(Numbers(lambda i: torch.ones(1, requires_grad=True) * 2), batch_size=None,
                       num_workers=1)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        next(iter(other))


@pytest.mark.parametrize("error, kind", [
    (KeyError("five"), KeyError), (ValueError("five"), ValueError),
    (TwoArguments(1, 2), RuntimeError)])
def test_errors_of_workers_are_raised(error, kind):
    loader = DataLoader(Numbers(at_five(error)), batch_size=2, num_workers=2)
    with pytest.raises(kind) as caught:
        list(iter(loader))
    text = str(caught.value)
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker process 0.\n"
                           "Original Traceback (most recent call last):\n")
    assert "raise error" in text


def test_error_in_this_process_is_itself():
    with pytest.raises(KeyError, match=r"^'five'$"):
        list(DataLoader(Numbers(at_five(KeyError("five")))))


def test_worker_init():
    def init(number):
        assert get_worker_info().id == number
        get_worker_info().dataset.item = lambda i: 7
    assert lists(DataLoader(Numbers(), num_workers=1, worker_init_fn=init)) == [[7]] * 10

    def fail(number):
        raise ValueError("init")
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0"):
        list(DataLoader(Numbers(), num_workers=1, worker_init_fn=fail))


def test_seeds_of_workers_are_pytorchs():
    def item(i):
        import random

        import numpy
        return torch.rand(1).item(), random.random(), numpy.random.rand(), torch.initial_seed()
    torch.manual_seed(1)
    first, second, third, *_ = DataLoader(Numbers(item), batch_size=None, num_workers=2)
    assert first == [0.5113104581832886, 0.4495910966205341, 0.7809243576395145,
                     7692698082559361259]
    assert second == [0.3022708296775818, 0.5858821825793612, 0.49401011740198875,
                      7692698082559361260]
    assert third == [0.2310420274734497, 0.3209548294164798, 0.7493266768424349,
                     7692698082559361259]


def test_a_dead_worker_is_noticed():
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexp"):
        list(DataLoader(Numbers(lambda i: os._exit(3)), num_workers=1))


def test_timeout():
    loader = DataLoader(Numbers(lambda i: time.sleep(3)), num_workers=1, timeout=0.2)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        next(iter(loader))


def test_leaving_early_ends_the_workers():
    iterator = iter(DataLoader(Numbers(lambda i: torch.zeros(200, 200)), num_workers=2))
    next(iterator)
    processes = [worker.process for worker in iterator._workers]
    del iterator
    assert not any(process.is_alive() for process in processes)


def test_persistent_workers_after_leaving_early():
    loader = DataLoader(Numbers(), batch_size=2, num_workers=2, persistent_workers=True)
    next(iter(loader))
    pids = [worker.process.pid for worker in loader._iterator._workers]
    assert lists(loader) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert pids == [worker.process.pid for worker in loader._iterator._workers]


@pytest.mark.parametrize("options, error, message", [
    ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
    ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
    ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in"),
    ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
    ({"sampler": [1], "shuffle": True}, ValueError, "sampler option is mutually exclusive with"),
    ({"batch_sampler": [[1]], "batch_size": 2}, ValueError, "batch_sampler option is mutually"),
    ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables"),
    ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got"),
    ({"multiprocessing_context": "fork"}, ValueError, "can only be used with multi-process load"),
    ({"num_workers": 1, "multiprocessing_context": "x"}, ValueError, "valid start method in"),
    ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "valid context object or a"),
])
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        DataLoader(Numbers(), **options)


def test_bad_options_of_iterables():
    for name, value in (("shuffle", True), ("sampler", [1]), ("batch_sampler", [[1]])):
        with pytest.raises(ValueError, match=f"expected unspecified {name} option, but got"):
            DataLoader(Share(), **{name: value})


def test_fixed_attributes():
    loader = DataLoader(Numbers())
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader"):
        loader.batch_size = 3
    loader.timeout = 3


def test_many_workers_are_warned_of():
    with pytest.warns(UserWarning, match="This DataLoader will create 5000 worker processes"):
        DataLoader(Numbers(), num_workers=5000)


def test_timeout_needs_workers():
    with pytest.raises(AssertionError, match="_SingleProcessDataLoaderIter requires timeout == 0"):
        next(iter(DataLoader([1], timeout=5)))


# ---- interrupts ---------------------------------------------------------------------------------

def children():
    """The processes that this one has started and that still run."""
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {int(p) for p in pids if "resource_tracker" not in Path(
        f"/proc/{p}/cmdline").read_text() and Path(f"/proc/{p}/stat").read_text().split()[2] != "Z"}


def interrupted(run, seconds, interrupt):
    """Interrupt `run` after that time: it is left soon, with no process of its own."""
    def later():
        wait = seconds
        while not done.wait(wait):
            began.append(time.monotonic())
            interrupt()
            wait = 1                # one that came while a finalizer ran is lost: Python drops it
    began, done, before = [], threading.Event(), children()
    thread = threading.Thread(target=later)
    with pytest.raises(KeyboardInterrupt):
        try:
            thread.start()
            run()
        finally:
            done.set()
            thread.join()                   # an interrupt that comes late comes here
    assert not began or time.monotonic() - began[0] < 2
    assert children() <= before


def by_signal():
    os.kill(os.getpid(), signal.SIGINT)


def by_exception():
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(threading.main_thread().ident), ctypes.py_object(KeyboardInterrupt))


interrupts = pytest.mark.skipif(not Path(f"/proc/self/task/{os.getpid()}/children").exists(),
                                reason="needs /proc")


@interrupts
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("interrupt", [by_signal, by_exception])
def test_an_interrupt_while_workers_load_ends_them(persistent, interrupt):
    loader = DataLoader(Numbers(lambda i: time.sleep(20)), num_workers=2,
                        persistent_workers=persistent)
    interrupted(lambda: next(iter(loader)), 0.2, interrupt)
    loader.dataset.item = lambda i: i
    assert lists(loader)[-1] == [9]         # and the loader can be used again


@interrupts
@pytest.mark.parametrize("persistent", [False, True])
def test_an_interrupt_of_the_program_itself_ends_busy_workers(persistent):
    def train():
        loader = DataLoader(Numbers(lambda i: time.sleep(20 * bool(i)) or i), num_workers=2,
                            persistent_workers=persistent)
        for _ in loader:
            try:
                time.sleep(20)
            except KeyboardInterrupt as error:
                raise error.with_traceback(None) from None
    interrupted(train, 0.3, by_signal)


@interrupts
@pytest.mark.parametrize("milliseconds", [0, 1, 2, 4, 6, 8, 12, 20, 40])
def test_an_interrupt_while_workers_start_leaves_none(milliseconds):
    def start():
        while True:
            next(iter(DataLoader(Numbers(), num_workers=2)))
    interrupted(start, milliseconds / 1000, by_signal)


def test_workers_that_were_ended_leave_no_shared_memory():
    loader = DataLoader(Numbers(lambda i: torch.zeros(1000, 1000)), num_workers=2)
    iterator = iter(loader)
    next(iterator)
    pids = [worker.process.pid for worker in iterator._workers]
    iterator._shutdown_workers(now=True)
    folder = Path(transfer.shared_folder() or tempfile.gettempdir())
    assert not [path for pid in pids for path in folder.glob(f"{transfer.prefix(pid)}*")]


def test_dead_persistent_workers_are_replaced_in_the_next_iteration():
    loader = DataLoader(Numbers(), num_workers=2, persistent_workers=True)
    assert lists(loader)[-1] == [9]
    for worker in loader._iterator._workers:
        worker.process.kill()
        worker.process.join()
    assert lists(loader)[-1] == [9]


def test_types_that_other_loaders_name():
    assert dataloader._collate_fn_t[int].__args__ == (list[int], Any)
    assert dataloader._worker_init_fn_t.__args__ == (int, None)


class _Broken(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        if index == 1:
            raise NotImplementedError("no second one")
        return index


def test_batches_after_a_broken_one_can_be_asked_for():
    loader = DataLoader(_Broken(), num_workers=2, batch_size=1, multiprocessing_context="fork")
    batches, found, errors = iter(loader), [], 0
    workers = batches._workers
    while True:
        try:
            found.append(next(batches).item())
        except NotImplementedError:
            errors += 1
        except StopIteration:
            break
    assert found == [0, 2, 3, 4] and errors == 1
    for worker in workers:
        worker.join(5)
        assert not worker.is_alive() and worker.exitcode == 0


def test_persistent_workers_go_with_their_loader():
    batches = iter(DataLoader(list(range(8)), num_workers=1, persistent_workers=True,
                              multiprocessing_context="fork"))
    worker = batches._workers[0]
    next(batches)
    del batches
    worker.join(5)
    assert not worker.is_alive()


def test_other_loaders_learn_of_dead_workers():
    import multiprocessing

    from flambeau.utils.data._utils import signal_handling
    process = multiprocessing.get_context("fork").Process(target=os._exit, args=(3,))
    process.start()
    signal_handling._set_worker_pids(1, (process.pid,))
    try:
        with pytest.raises(RuntimeError, match=f"pid {process.pid}. exited unexpectedly with exit"):
            while True:
                signal_handling._error_if_any_worker_fails()
    finally:
        signal_handling._remove_worker_pids(1)
        process.join()


def test_data_is_pinned_by_its_own_method():
    from flambeau.utils.data._utils.pin_memory import pin_memory

    class Batch:
        def pin_memory(self):
            return "pinned"
    x = torch.ones(2)
    found = pin_memory({"x": [x], "batch": Batch()})
    assert found == {"x": [x], "batch": "pinned"} and found["x"][0] is x


def test_vitals_are_not_kept():
    with pytest.warns(UserWarning, match="'set_vital' is deprecated"):
        assert torch.set_vital("Dataloader", "enabled", "True") is None
