"""What runs in a worker process, here in a thread."""
import multiprocessing
import threading

import numpy as np
import pytest

import flambeau
from flambeau.utils.data._utils import transfer, worker
from flambeau.utils.data._utils.fetch import _MapDatasetFetcher


@pytest.fixture
def state():
    threads, numbers, other = flambeau.get_num_threads(), flambeau.get_rng_state(), \
        np.random.get_state()
    yield
    flambeau.set_num_threads(threads)
    flambeau.set_rng_state(numbers)
    np.random.set_state(other)
    worker._worker_info = None


class Connected:
    """A worker's loop in a thread, and the loader's end of its connection."""

    def __init__(self, dataset, init_fn=None):
        self.here, there = multiprocessing.Pipe()
        make = lambda data: _MapDatasetFetcher(data, True, list, False)
        self.thread = threading.Thread(
            target=worker.run, args=(there, (), make, dataset, 7, 1, 2, init_fn))
        self.thread.start()

    def ask(self, *request):
        transfer.send(self.here, request)
        return transfer.receive(self.here)

    def stop(self):
        transfer.send(self.here, (worker.STOP, None, None))
        self.thread.join(10)
        assert not self.thread.is_alive()


def test_batches_and_errors(state, monkeypatch):
    monkeypatch.setattr(worker, "let_interrupts_in", lambda: None)
    infos = []
    loop = Connected([10, 20, 30], lambda number: infos.append(worker.get_worker_info()))
    assert loop.ask(worker.FETCH, 0, [2, 0]) == (worker.DATA, 0, [30, 10])
    kind, number, failure = loop.ask(worker.FETCH, 1, [9])
    assert (kind, number, failure.exc_type) == (worker.FAILED, 1, IndexError)
    with pytest.raises(IndexError, match="Caught IndexError in DataLoader worker process 1"):
        failure.reraise()
    loop.stop()
    assert [(i.id, i.num_workers, i.seed) for i in infos] == [(1, 2, 8)]


def test_a_worker_that_cannot_start_says_so_each_time(state, monkeypatch):
    monkeypatch.setattr(worker, "let_interrupts_in", lambda: None)

    def fail(number):
        raise ValueError("not today")
    loop = Connected([1], fail)
    for number in range(2):
        kind, answered, failure = loop.ask(worker.FETCH, number, [0])
        assert kind == worker.FAILED and answered == number and failure.exc_type is ValueError
    loop.stop()


def test_seeds_of_numpy_are_pytorchs():
    assert worker._generate_state(1, 2) == [307626447, 1538850434, 3092219749, 3926071173]
    assert worker.get_worker_info() is None


def test_the_main_process_is_watched():
    watch = worker.ManagerWatchdog()
    assert watch.is_alive()
    watch.manager_pid = -1
    assert not watch.is_alive()
