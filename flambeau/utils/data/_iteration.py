"""What iterations over a loader have in common, with worker processes and without."""
from __future__ import annotations

import warnings
from typing import Any

import flambeau
from flambeau.utils.data.datapipes.datapipe import IterDataPipe
from flambeau.utils.data.graph_settings import apply_random_seed, apply_sharding

__all__: list[str] = []


class _BaseDataLoaderIter:
    """One iteration over a loader."""

    def __init__(self, loader: Any) -> None:
        self._loader = _options_of(loader)
        self._dataset = loader.dataset
        self._dataset_kind, self._auto_collation = loader._dataset_kind, loader._auto_collation
        self._drop_last, self._collate_fn = loader.drop_last, loader.collate_fn
        self._num_workers, self._timeout = loader.num_workers, loader.timeout
        self._persistent_workers = loader.persistent_workers
        self._pin_memory = loader.pin_memory and flambeau.accelerator.is_available()
        self._pin_memory_device = loader.pin_memory_device or None
        self._world_size, self._rank = _get_distributed_settings() \
            if isinstance(loader.dataset, IterDataPipe) else (1, 0)
        self._shared_seed: int | None = None
        self._index_sampler = loader._index_sampler
        self._begin(loader)
        self._base_seed = _drawn_seed(loader.generator)
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
        if loader.pin_memory and not self._pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then "
                          "device pinned memory won't be used.", stacklevel=3)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Go back to the start of the samples."""
        self._begin(loader)

    def _begin(self, loader: Any) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        if isinstance(self._dataset, IterDataPipe):
            self._shared_seed = _share_dist_seed(loader.generator, None)
            apply_random_seed(self._dataset, flambeau.Generator().manual_seed(self._shared_seed))

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._index_sampler)

    def _next_index(self):
        return next(self._sampler_iter)

    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        reported = self._IterableDataset_len_called
        if reported is not None and self._num_yielded > reported:
            self._warn_length()
        return data

    def _warn_length(self):
        text = (f"Length of IterableDataset {self._loader.dataset} was reported to be "
                f"{self._IterableDataset_len_called}(when accessing len(dataloader)), but "
                f"{self._num_yielded} samples have been fetched. ")
        if self._loader.num_workers > 0:
            text += ("For multiprocessing data-loading, this could be caused by not properly "
                     "configuring the IterableDataset replica at each worker. Please see "
                     "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset "
                     "for examples.")
        warnings.warn(text, stacklevel=3)


def _drawn_seed(generator: Any) -> int:
    return flambeau.empty((), dtype=flambeau.int64).random_(generator=generator).item()


def _get_distributed_settings() -> tuple[int, int]:
    """How many processes there are, and the rank of this one."""
    dist = flambeau.distributed
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size(), dist.get_rank()
    return 1, 0


def _share_dist_seed(generator: Any, pg: Any) -> int:
    """A random seed; that of the first process if there is a group."""
    seed = flambeau.tensor(_drawn_seed(generator))
    if pg is not None:
        flambeau.distributed.broadcast(seed, src=0, group=pg)
    return int(seed)


def _sharding_worker_init_fn(worker_init_fn: Any, world_size: int, rank_id: int, worker_id: int
                             ) -> None:
    """Give the pipe of a worker its share of the elements, then run the user's function."""
    info = flambeau.utils.data.get_worker_info()
    apply_sharding(info.dataset, info.num_workers * world_size,
                   worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


def _options_of(loader: Any) -> Any:
    """The loader without its iterator: one that persists is the loader's, and must go with it."""
    if loader._iterator is None and not loader.persistent_workers:
        return loader
    options = object.__new__(type(loader))
    vars(options).update(vars(loader), _iterator=None)
    return options
