"""`ElasticDistributedSampler`."""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

import flambeau
from flambeau.utils.data import Dataset
from flambeau.utils.data.distributed import DistributedSampler

T = TypeVar("T")

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler[T]):
    """A `DistributedSampler` that begins at `start_index` of each epoch's order: what a run has
    seen before it was started again.

    >>> sampler = ElasticDistributedSampler(range(10), num_replicas=2, rank=0, start_index=4)
    >>> len(sampler), len(list(sampler))
    (3, 3)
    """

    def __init__(self, dataset: Dataset[T], num_replicas: int | None = None,
                 rank: int | None = None, start_index: int = 0):
        super().__init__(dataset=dataset, num_replicas=num_replicas, rank=rank)
        if start_index >= len(dataset):             # type: ignore[arg-type]
            raise ValueError(f"Start index {start_index} should be less than dataset size "
                             f"{len(dataset)}")     # type: ignore[arg-type]
        self.start_index = start_index
        rest = len(dataset) - start_index           # type: ignore[arg-type]
        self.num_samples = math.ceil(rest / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[T]:
        generator = flambeau.Generator()
        generator.manual_seed(self.epoch)
        rest = len(self.dataset) - self.start_index
        indices = [self.start_index + i
                   for i in flambeau.randperm(rest, generator=generator).tolist()]
        order = range(self.rank, self.total_size, self.num_replicas)
        return iter([indices[i % rest] for i in order])     # the first ones again at the end

    def __len__(self) -> int:
        return self.num_samples
