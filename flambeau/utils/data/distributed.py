"""A sampler for training in several processes."""

import math

import flambeau
from flambeau.utils.data.sampler import Sampler, _T_co

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[_T_co]):
    """The share of a dataset that one of several processes trains on.

    All processes draw the same permutation, and each takes every n-th number of it.

    Args:
        dataset: the dataset.
        num_replicas: how many processes there are; by default the world size.
        rank: which one this is; by default the process's rank.
        shuffle: whether to permute.
        seed: seed of the permutation; it must be the same in all processes.
        drop_last: drop samples so that all shares are equal, instead of repeating some.

    Call :meth:`set_epoch` before each epoch, or all epochs have the same order.

    Example::

        >>> from flambeau.utils.data import DistributedSampler
        >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 0]
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0,
                 drop_last=False):
        if num_replicas is None or rank is None:
            from flambeau import distributed
            if not distributed.is_available():
                raise RuntimeError("Requires distributed package to be available")
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        if drop_last and len(dataset) % num_replicas != 0:
            self.num_samples = math.ceil((len(dataset) - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = flambeau.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = flambeau.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        if self.drop_last:
            indices = indices[:self.total_size]
        elif indices:
            indices = (indices * math.ceil(self.total_size / n))[:self.total_size]
        return iter(indices[self.rank::self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Have the next iteration draw another permutation, that of this epoch."""
        self.epoch = epoch
