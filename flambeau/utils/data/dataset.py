"""Datasets: what samples there are, by number or one after another."""

import bisect
import itertools
import math
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

import flambeau
from flambeau.random import default_generator

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
           "TensorDataset", "random_split"]

_T_co = TypeVar("_T_co", covariant=True)
_T_stack = TypeVar("_T_stack")


class Dataset(Generic[_T_co]):
    """A map from keys to samples.

    A subclass implements `__getitem__`, and `__len__` for most samplers. It may implement
    `__getitems__`, which takes a list of keys and gives a list of samples, to load batches faster.

    Example::

        >>> from flambeau.utils.data import Dataset
        >>> class Squares(Dataset):
        ...     def __len__(self):
        ...         return 5
        ...     def __getitem__(self, i):
        ...         return i * i
        >>> (Squares() + Squares())[7]
        4
    """

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """Samples that come one after another, as from a stream.

    A subclass implements `__iter__`. With several worker processes each has a copy of the
    dataset: `get_worker_info` tells a copy which share of the samples is its own.

    Example::

        >>> from flambeau.utils.data import DataLoader, IterableDataset
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> list(DataLoader(Count(), batch_size=2))
        [tensor([0, 1]), tensor([2])]
    """

    @abstractmethod
    def __iter__(self):
        raise NotImplementedError

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple]):
    """Tensors of equal first size: sample `i` is the tuple of their entries `i`.

    Example::

        >>> import flambeau as torch
        >>> torch.utils.data.TensorDataset(torch.arange(3), torch.zeros(3))[1]
        (tensor(1), tensor(0.))
    """

    def __init__(self, *tensors):
        if not all(tensors[0].size(0) == tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset[_T_stack]):
    """Datasets of equal length side by side: tuples of samples, or dicts if given by name.

    Example::

        >>> from flambeau.utils.data import StackDataset
        >>> StackDataset(image=["a", "b"], label=[0, 1])[1]
        {'image': 'b', 'label': 1}
    """

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or``dict``- (via "
                             "``kwargs``) like input/output, but both types are given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        lengths = {len(dataset) for dataset in self._members()}
        if len(lengths) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length, = lengths

    def _members(self):
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, parts):
        return dict(zip(self.datasets, parts, strict=True)) if isinstance(
            self.datasets, dict) else tuple(parts)

    def __getitem__(self, index):
        return self._sample([dataset[index] for dataset in self._members()])

    def __getitems__(self, indices):
        columns = []
        for dataset in self._members():
            if callable(getattr(dataset, "__getitems__", None)):
                column = dataset.__getitems__(indices)
                if len(column) != len(indices):
                    raise ValueError("Nested dataset's output size mismatch. Expected "
                                     f"{len(indices)}, got {len(column)}")
            else:
                column = [dataset[index] for index in indices]
            columns.append(column)
        return [self._sample(parts) for parts in zip(*columns, strict=True)]

    def __len__(self):
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Datasets one behind another.

    Example::

        >>> from flambeau.utils.data import ConcatDataset
        >>> data = ConcatDataset(["ab", "cde"])
        >>> len(data), data[2], data[-1]
        (5, 'c', 'e')
    """

    @staticmethod
    def cumsum(sequence):
        """Where each dataset ends."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]

    @property
    def cummulative_sizes(self):
        """An older name of `cumulative_sizes`."""
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
                      FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Iterable datasets one after another.

    Example::

        >>> from flambeau.utils.data import ChainDataset, IterableDataset
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(2))
        >>> list(ChainDataset([Count(), Count()]))
        [0, 1, 0, 1]
    """

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def __iter__(self):
        for dataset in self._checked():
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self._checked())

    def _checked(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset


class Subset(Dataset[_T_co]):
    """Some samples of a dataset, by their numbers.

    Example::

        >>> from flambeau.utils.data import Subset
        >>> list(Subset("abcde", [0, 3]))
        ['a', 'd']
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[i] for i in chosen]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=default_generator):
    """Divide a dataset at random into parts of the given lengths.

    Args:
        dataset: the dataset.
        lengths: the lengths; or fractions that sum to 1, of which each is rounded down and the
            first ones get the samples that are left, one each in turn.
        generator: source of the random permutation; by default the global one.

    Example::

        >>> from flambeau.utils.data import random_split
        >>> [len(part) for part in random_split(range(10), [0.25, 0.75])]
        [3, 7]
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _whole_lengths(lengths, len(dataset))
    if sum(lengths) != len(dataset):
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset!")
    if generator is None:
        generator = flambeau.default_generator
    order = iter(flambeau.randperm(sum(lengths), generator=generator).tolist())
    return [Subset(dataset, list(itertools.islice(order, length))) for length in lengths]


def _whole_lengths(fractions, total):
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    lengths = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty "
                          "dataset.", stacklevel=3)
    return lengths
