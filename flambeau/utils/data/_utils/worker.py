"""What runs in a worker process."""

import os
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

import flambeau
from flambeau._utils import ExceptionWrapper
from flambeau.utils.data._utils import transfer
from flambeau.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from flambeau.utils.data.graph_settings import apply_sharding

FETCH, RESUME, STOP = "fetch", "resume", "stop"
DATA, ENDED, FAILED = "data", "ended", "failed"


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker process knows of itself.

    Attributes:
        id: its number, from 0.
        num_workers: how many workers there are.
        seed: the seed of its random numbers: the loader's seed of this epoch, plus `id`.
        dataset: its copy of the dataset.
        rng: its sources of random numbers, where workers are threads.
        worker_method: what workers are.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


_worker_info = None


class ManagerWatchdog:
    """Tells a worker whether the process that started it is still there."""

    def __init__(self):
        self.manager_pid = os.getppid()

    def is_alive(self):
        """Has the parent process not died?"""
        return os.getppid() == self.manager_pid


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """What a worker says when its part of an iterable dataset is at its end."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """What a worker that stays is told at the start of an epoch."""

    seed: int | None = None


def get_worker_info():
    """The :class:`WorkerInfo` of this process, or None in the main process.

    Example::

        >>> from flambeau.utils.data import get_worker_info
        >>> get_worker_info() is None
        True
    """
    return _worker_info


def let_interrupts_in():
    """What `pool` puts here, in a process that has started workers."""


def run(connection, inherited, make_fetcher, dataset, base_seed, worker_id, num_workers, init_fn):
    """Answer the requests that come through the connection, until it closes.

    Each request `(FETCH, number, index)` is answered with the number and a batch, an exception,
    or the news that an iterable dataset has ended.
    """
    where = f"in DataLoader worker process {worker_id}"
    fetcher = failure = None
    try:
        let_interrupts_in()
        for other in inherited:
            other.close()
        try:
            _seed(base_seed, worker_id, num_workers, dataset)
            if isinstance(dataset, IterDataPipe | MapDataPipe):
                apply_sharding(dataset, num_workers, worker_id)
            if init_fn is not None:
                init_fn(worker_id)
            fetcher = make_fetcher(dataset)
        except Exception:
            failure = ExceptionWrapper(where=where)
        while True:
            request, number, index = transfer.receive(connection)
            if request == STOP:
                return
            if request == RESUME:
                if failure is None:
                    fetcher = make_fetcher(dataset)
                continue
            _answer(connection, fetcher, failure, number, index, where)
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return   # the main process is gone, or it was interrupted and we with it


def _answer(connection, fetcher, failure, number, index, where):
    if failure is not None:
        _send_failure(connection, number, failure)
        return
    try:
        kind, value = DATA, fetcher.fetch(index)
    except StopIteration:
        if not fetcher.can_end:   # from a map-style dataset it is an error like others
            _send_failure(connection, number, ExceptionWrapper(where=where))
            return
        kind, value = ENDED, None
    except Exception:
        _send_failure(connection, number, ExceptionWrapper(where=where))
        return
    try:
        transfer.send(connection, (kind, number, value))
    except (ConnectionError, EOFError):
        raise
    except Exception:
        _send_failure(connection, number, ExceptionWrapper(where=where))


def _send_failure(connection, number, failure):
    try:
        transfer.send(connection, (FAILED, number, failure))
    except (ConnectionError, EOFError):
        raise
    except Exception:   # the exception's class cannot be pickled
        failure.exc_type = RuntimeError
        transfer.send(connection, (FAILED, number, failure))


def _generate_state(base_seed, worker_id):
    """The four words that seed NumPy's random numbers in a worker.

    >>> _generate_state(1, 2)
    [307626447, 1538850434, 3092219749, 3926071173]
    """
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4).tolist()


def _seed(base_seed, worker_id, num_workers, dataset):
    """Make this a worker: its info, one thread, and random numbers of its own."""
    global _worker_info
    flambeau.set_num_threads(1)
    seed = base_seed + worker_id
    random.seed(seed)
    flambeau.manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker_id))
    _worker_info = WorkerInfo(worker_id, num_workers, seed, dataset)
