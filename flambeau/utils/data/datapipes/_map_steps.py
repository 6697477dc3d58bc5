"""Steps of pipes that give the element of a key."""

import copy
import warnings

from flambeau._support.lazy.modules import stand_in
from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes._shuffling import ShufflingIterDataPipe
from flambeau.utils.data.datapipes.datapipe import DataChunk, MapDataPipe

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The elements of a sequence or of a mapping, copied first unless `deepcopy` is False."""

    def __init__(self, sequence, deepcopy=True):
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn("The input sequence can not be deepcopied, please be aware of "
                              "in-place modification would affect source data.", stacklevel=2)

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


def default_fn(value):
    return value


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """`fn` of each element."""

    def __init__(self, datapipe, fn=default_fn):
        self.datapipe, self.fn = datapipe, fn

    def __len__(self):
        return len(self.datapipe)

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Groups of `batch_size` elements with neighbouring keys."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(first, last)])

    def __len__(self):
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


def _check_pipes(datapipes):
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """The elements of one pipe after those of another."""

    def __init__(self, *datapipes):
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the elements that several pipes have for a key."""

    def __init__(self, *datapipes):
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        found = []
        for pipe in self.datapipes:
            try:
                found.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input "
                                 f"MapDataPipes {pipe}.") from error
        return tuple(found)

    def __len__(self):
        return min(len(pipe) for pipe in self.datapipes)


class ShufflerIterDataPipe(ShufflingIterDataPipe):
    """The elements in random order, of all keys or of the given `indices`."""

    def __init__(self, datapipe, *, indices=None):
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices

    def reset(self):
        super().reset()
        if self._enabled:
            self._order = self._rng.sample(self.indices, len(self.indices))

    def __iter__(self):
        for index in reversed(self._order) if self._enabled else self.indices:
            yield self.datapipe[index]

    def __len__(self):
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
SequenceWrapper, Mapper, Batcher = SequenceWrapperMapDataPipe, MapperMapDataPipe, BatcherMapDataPipe
Concater, Zipper, Shuffler = ConcaterMapDataPipe, ZipperMapDataPipe, ShufflerIterDataPipe
stand_in("utils.data.datapipes.map.callable", MapperMapDataPipe)
stand_in("utils.data.datapipes.map.combinatorics", ShufflerIterDataPipe)
stand_in("utils.data.datapipes.map.combining", ConcaterMapDataPipe, ZipperMapDataPipe)
stand_in("utils.data.datapipes.map.grouping", BatcherMapDataPipe)
stand_in("utils.data.datapipes.map.utils", SequenceWrapperMapDataPipe)
