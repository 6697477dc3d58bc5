"""The data loader, which brings samples into batches, in worker processes if asked to."""

import functools
import itertools
import multiprocessing
import os
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from flambeau.utils.data._iteration import (  # noqa: F401 - some are for other loaders
    _BaseDataLoaderIter,
    _get_distributed_settings,
    _options_of,
    _sharding_worker_init_fn,
    _share_dist_seed,
)
from flambeau.utils.data._utils import pool, transfer, worker
from flambeau.utils.data._utils.collate import default_collate, default_convert
from flambeau.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from flambeau.utils.data._utils.worker import get_worker_info
from flambeau.utils.data.datapipes.datapipe import (
    IterDataPipe,
    MapDataPipe,
    _IterDataPipeSerializationWrapper,
    _MapDataPipeSerializationWrapper,
)
from flambeau.utils.data.dataset import Dataset, IterableDataset
from flambeau.utils.data.graph_settings import apply_shuffle_settings
from flambeau.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_collate_fn_t = Callable[[list[_T]], Any]       # types, which loaders of other libraries name
_worker_init_fn_t = Callable[[int], None]


class _DatasetKind:
    """How elements of a dataset are had: by index, or one after the other."""
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """What gets batches from a dataset of this kind."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """The sampler of an iterable dataset, whose samples have no numbers."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader(Generic[_T_co]):
    """An iterable over the batches of a dataset.

    Each iteration draws a seed from `generator`, and a sampler draws what it needs; the order of
    the samples is the same with any number of workers.

    Args:
        dataset: a map-style or iterable dataset; anything with `__getitem__` and `__len__`.
        batch_size: samples in a batch; None to give samples as they are.
        shuffle: take the samples in another random order in each iteration.
        sampler: an iterable of sample numbers, instead of `shuffle`.
        batch_sampler: an iterable of lists of sample numbers, instead of all the above.
        num_workers: how many processes load batches ahead; 0 to load in this process.
        collate_fn: turns a list of samples into a batch; by default :func:`default_collate`, or
            :func:`default_convert` for single samples.
        pin_memory: accepted; only an accelerator would gain from it.
        drop_last: leave out a last batch that is smaller.
        timeout: most seconds to wait for a worker's batch; 0 for no limit.
        worker_init_fn: called with the worker's number in each worker, after seeding.
        multiprocessing_context: how to start workers: a name or a context.
        generator: source of random numbers; by default the global one.
        prefetch_factor: batches that each worker loads ahead, 2 by default.
        persistent_workers: keep the workers from one iteration to the next.
        pin_memory_device: accepted, as `pin_memory`.
        in_order: give batches in their order; if False, as soon as they are loaded.

    Example::

        >>> import flambeau as torch
        >>> data = torch.utils.data.TensorDataset(torch.arange(5))
        >>> for batch, in torch.utils.data.DataLoader(data, batch_size=2):
        ...     print(batch)
        tensor([0, 1])
        tensor([2, 3])
        tensor([4])
    """

    __initialized = False
    _FIXED = frozenset((
        "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))

    def __init__(self, dataset: Dataset[_T_co], batch_size: int | None = 1,
                 shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None,
                 num_workers: int = 0, collate_fn: Callable[[list[Any]], Any] | None = None,
                 pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
                 worker_init_fn: Callable[[int], None] | None = None,
                 multiprocessing_context: Any = None, generator: Any = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False,
                 pin_memory_device: str = "", in_order: bool = True) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            if isinstance(dataset, IterDataPipe):
                self.dataset = dataset = _IterDataPipeSerializationWrapper(dataset)
                apply_shuffle_settings(dataset, shuffle)    # a shuffler it adds is not used there
                shuffle = None
            _check_no_sampler(shuffle=shuffle or None, sampler=sampler,
                              batch_sampler=batch_sampler)
        else:
            self._dataset_kind = _DatasetKind.Map
            if isinstance(dataset, MapDataPipe):
                self.dataset = dataset = _MapDataPipeSerializationWrapper(dataset)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, "
                                 "shuffle, sampler, and drop_last")
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually "
                             "exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called = None
        self._iterator = None
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self):
        """How worker processes are started, None for the platform's default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            if self.num_workers == 0:
                raise ValueError("multiprocessing_context can only be used with multi-process "
                                 f"loading (num_workers > 0), but got num_workers="
                                 f"{self.num_workers}")
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}")
                context = multiprocessing.get_context(context)
            elif not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string "
                    f"specifying the start method, but got multiprocessing_context={context}")
        self.__multiprocessing_context = context

    def __setattr__(self, attr, val):
        if self.__initialized and attr in self._FIXED:
            raise ValueError(f"{attr} attribute should not be set after "
                             f"{type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    def _get_iterator(self):
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self):
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None or not self._iterator._alive():
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        """The sampler of what a fetcher is asked for: numbers of samples, or lists of them."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self):
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is not None:
            length = length // self.batch_size if self.drop_last else -(-length // self.batch_size)
        return length

    def check_worker_number_rationality(self):
        """Warn if there are more workers than this process may use CPUs."""
        if not self.num_workers:
            return
        try:
            cpus = len(os.sched_getaffinity(0))
        except AttributeError:   # not every platform knows affinity
            cpus = os.cpu_count()
        if cpus is None:
            warnings.warn(_worker_warning(self.num_workers, "DataLoader is not able to compute a "
                          "suggested max number of worker in current system."), stacklevel=3)
        elif self.num_workers > cpus:
            warnings.warn(_worker_warning(
                self.num_workers, f"Our suggested max number of worker in current system is {cpus}"
                ", which is smaller than what this DataLoader is going to create."), stacklevel=3)


def _worker_warning(workers, reason):
    return (f"This DataLoader will create {workers} worker processes in total. {reason} Please be "
            "aware that excessive worker creation might get DataLoader running slow or even "
            "freeze, lower the worker number to avoid potential slowness/freeze if necessary.")


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable "
                         "multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing.let "
                         "num_workers > 0 to enable multiprocessing, otherwise set "
                         "prefetch_factor to None.")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_no_sampler(**options):
    for name, value in options.items():
        if value is not None:
            raise ValueError("DataLoader with IterableDataset: expected unspecified "
                             f"{name} option, but got {name}={value}")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """An iteration that loads each batch when it is asked for."""

    def __init__(self, loader):
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetcher = _DatasetKind.create_fetcher(
            loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn,
            loader.drop_last)

    def _next_data(self):
        return self._fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """An iteration whose batches are loaded ahead by worker processes.

    Workers get numbered tasks in turn. `_waiting` holds, oldest first, the tasks that are not
    given back yet: the number, the worker, and the answer once it has come.
    """

    def __init__(self, loader):
        super().__init__(loader)
        self._owner = weakref.ref(loader)
        self._workers = []
        self._waiting = {}
        self._closed = False
        try:
            self._start_workers(loader)
            self._start()
        except BaseException:
            self._shutdown_workers(now=True)
            raise

    def _start_workers(self, loader):
        context = loader.multiprocessing_context or multiprocessing.get_context()
        make_fetcher = functools.partial(
            _make_fetcher, loader._dataset_kind, loader._auto_collation, loader.collate_fn,
            loader.drop_last)
        forks = context.get_start_method() == "fork"
        for i in range(loader.num_workers):
            inherited = []
            arguments = (inherited, make_fetcher, loader.dataset, self._base_seed, i,
                         loader.num_workers, loader.worker_init_fn)
            self._workers.append(pool.Worker(context, arguments))
            if forks:
                inherited += [w.connection for w in self._workers]
            with pool.held_interrupts(forks):
                self._workers[-1].start()

    def _reset(self, loader):
        """Begin another iteration with the same workers."""
        try:
            self._begin_again(loader)
        except BaseException:
            self._shutdown_workers(now=True)
            raise

    def _begin_again(self, loader):
        self._loader, self._owner = _options_of(loader), weakref.ref(loader)
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        if loader._dataset_kind == _DatasetKind.Iterable or any(
                not w.active for w in self._workers):
            for w in self._workers:
                w.ask(worker.RESUME)
        while any(answer is None for _, answer in self._waiting.values()):
            self._receive()   # what an iteration that was left early has asked for
        for w in self._workers:
            w.active = True
        self._start()

    def _start(self):
        self._waiting = {}   # number of a task: (its worker, the answer or None)
        self._done = deque()   # numbers of the tasks that are answered, in that order
        self._numbers = itertools.count()
        self._turns = itertools.cycle(self._workers)
        self._more = True
        for _ in range(self._loader.prefetch_factor * len(self._workers)):
            self._assign()

    def _assign(self):
        """Give the next task to the next worker that still has samples."""
        if not self._more or not any(w.active for w in self._workers):
            return
        try:
            index = self._next_index()
        except StopIteration:
            self._more = False
            return
        turn = next(w for w in self._turns if w.active)
        number = next(self._numbers)
        self._waiting[number] = (turn, None)
        turn.ask(worker.FETCH, number, index)

    def _next_data(self):
        try:
            return self._await_data()
        except Exception:
            raise
        except BaseException:       # interrupted: the program is not going to go on with this
            self._shutdown_workers(now=True)
            raise

    def _await_data(self):
        while True:
            if not self._waiting and not self._closed:   # with prefetch_factor=0
                self._assign()
            if self._closed or not self._waiting:
                if not self._loader.persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            number = self._ready()
            if number is None:
                self._receive()
                continue
            kind, value = self._waiting.pop(number)[1]
            if kind == worker.ENDED:
                continue
            self._assign()
            if kind == worker.FAILED:       # of one batch: the next ones can still be asked for
                value.reraise()
            return value

    def _ready(self):
        """The number of the next answer to give back, or None if it has not come."""
        if self._loader.in_order:
            number = next(iter(self._waiting))
            return None if self._waiting[number][1] is None else number
        while self._done:
            number = self._done.popleft()
            if number in self._waiting:
                return number
        return None

    def _receive(self):
        """Wait for answers, and take them in."""
        asked = {w.connection: w for w, answer in self._waiting.values() if answer is None}
        ready = pool.wait(list(asked), self._loader.timeout or None)
        if not ready:
            self._shutdown_workers()
            raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds")
        for connection in ready:
            try:
                kind, number, value = transfer.receive(connection)
            except (EOFError, ConnectionError) as error:
                self._fail_dead(asked[connection], error)
            sender = self._waiting[number][0]
            self._waiting[number] = (sender, (kind, value))
            self._done.append(number)
            if kind == worker.ENDED and sender.active:
                sender.active = False
                self._assign()

    def _fail_dead(self, dead, error):
        dead.process.join(timeout=1.0)
        pid = dead.process.pid
        self._shutdown_workers()
        raise RuntimeError(
            f"DataLoader worker (pid(s) {pid}) exited unexpectedly") from error

    def _shutdown_workers(self, now=False):
        if self._closed:
            return
        self._closed = True
        owner = self._owner()
        if owner is not None and owner._iterator is self:
            owner._iterator = None
        busy = {w for w, answer in self._waiting.values() if answer is None}
        pool.stop(self._workers, busy, now)

    def _alive(self):
        """Are there workers for another iteration? An interrupt of the program ends them too."""
        return not self._closed and all(w.process.is_alive() for w in self._workers)

    def __del__(self):
        workers = getattr(self, "_workers", None)
        if workers and workers[0].process._parent_pid == os.getpid():   # else a forked copy
            try:
                self._shutdown_workers()
            except KeyboardInterrupt:
                pool.interrupt_soon()


def _make_fetcher(kind, auto_collation, collate_fn, drop_last, dataset):
    return _DatasetKind.create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last)
