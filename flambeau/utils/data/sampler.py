"""Samplers: in which order to take the samples of a dataset."""

import itertools
from typing import Generic, TypeVar

import flambeau

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
           "WeightedRandomSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class Sampler(Generic[_T_co]):
    """An iterable of the numbers of samples, or of lists of them.

    A subclass implements `__iter__`, and `__len__` if the length is known.

    Example::

        >>> from flambeau.utils.data import DataLoader, Sampler
        >>> class Backwards(Sampler):
        ...     def __init__(self, n):
        ...         self.n = n
        ...     def __iter__(self):
        ...         return iter(range(self.n)[::-1])
        >>> list(DataLoader("abc", sampler=Backwards(3), batch_size=None))
        ['c', 'b', 'a']
    """

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All samples in their order."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Samples in random order.

    Args:
        data_source: the dataset.
        replacement: draw each sample anew from all of them.
        num_samples: how many to draw, by default all; without replacement, all are drawn before
            one is drawn again.
        generator: source of random numbers. By default each iteration draws a seed from the
            global one.

    Example::

        >>> from flambeau.utils.data import RandomSampler
        >>> sorted(RandomSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}")
        _check_count("num_samples", self.num_samples)

    @property
    def num_samples(self):
        """How many samples are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n, wanted = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            seed = int(flambeau.empty((), dtype=flambeau.int64).random_().item())
            generator = flambeau.Generator()
            generator.manual_seed(seed)
        if self.replacement:
            for start in range(0, wanted, 32):
                # 32 at a time, and all 32 of the last ones: the stream must advance as PyTorch's
                size = 32 if start + 32 <= wanted else wanted - start
                yield from flambeau.randint(
                    high=n, size=(size,), dtype=flambeau.int64, generator=generator).tolist()
        else:
            for _ in range(wanted // n):
                yield from flambeau.randperm(n, generator=generator).tolist()
            rest = flambeau.randperm(n, generator=generator).tolist()
            yield from rest[:wanted % n]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given numbers in random order."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in flambeau.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Numbers drawn with given probabilities.

    Args:
        weights: a weight for each sample, up to a common factor.
        num_samples: how many to draw.
        replacement: whether a number may be drawn more than once.
        generator: source of random numbers.

    Example::

        >>> from flambeau.utils.data import WeightedRandomSampler
        >>> list(WeightedRandomSampler([0.0, 1.0], 3))
        [1, 1, 1]
    """

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        _check_count("num_samples", num_samples)
        _check_bool("replacement", replacement)
        weights = flambeau.as_tensor(weights, dtype=flambeau.double)
        if weights.dim() != 1:
            raise ValueError("weights should be a 1d sequence but given weights have shape "
                             f"{tuple(weights.shape)}")
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        drawn = flambeau.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of `batch_size` numbers that a sampler gives.

    Args:
        sampler: the sampler, any iterable.
        batch_size: their length.
        drop_last: leave out a last list that is shorter.

    Example::

        >>> from flambeau.utils.data import BatchSampler
        >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler, batch_size, drop_last):
        _check_count("batch_size", batch_size)
        _check_bool("drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        if self.drop_last:
            return len(self.sampler) // self.batch_size
        return -(-len(self.sampler) // self.batch_size)


def _check_bool(name, value):
    if not isinstance(value, bool):
        raise ValueError(f"{name} should be a boolean value, but got {name}={value}")


def _check_count(name, value):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
