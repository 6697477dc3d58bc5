"""Steps of pipes that give their elements one after another."""

import copy
import warnings
from collections import defaultdict

from flambeau._support.lazy.modules import stand_in
from flambeau.utils.data._utils.collate import default_collate
from flambeau.utils.data.datapipes._branches import DemultiplexerIterDataPipe, ForkerIterDataPipe
from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes._shuffling import ShufflingIterDataPipe
from flambeau.utils.data.datapipes.datapipe import DataChunk, IterDataPipe
from flambeau.utils.data.sampler import SequentialSampler

__all__ = ["Batcher", "Collator", "Concater", "Demultiplexer", "Filter", "Forker", "Grouper",
           "IterableWrapper", "Mapper", "Multiplexer", "Sampler", "Shuffler",
           "UnBatcher", "Zipper"]


class _Step(IterDataPipe):
    """A pipe with one source, as long as that."""

    def __len__(self):
        return _length(self, self.datapipe)


def _length(pipe, source):
    if not hasattr(type(source), "__len__"):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return len(source)


class IterableWrapperIterDataPipe(IterDataPipe):
    """The elements of an iterable, copied at each iteration unless `deepcopy` is False."""

    def __init__(self, iterable, deepcopy=True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn("The input iterable can not be deepcopied, please be aware of "
                              "in-place modification would affect source data.", stacklevel=2)
        yield from source

    def __len__(self):
        return _length(self, self.iterable)


# ---- one by one ----------------------------------------------------------------------------------


@functional_datapipe("map")
class MapperIterDataPipe(_Step):
    """`fn` of each element; with `input_col` of those entries of it, which replaces the first of
    them, or goes to `output_col` (-1: is appended)."""

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn = datapipe, fn
        self.input_col, self.output_col = input_col, output_col

    def _apply(self, data):
        if self.input_col is None:
            return self.fn(data)
        several = isinstance(self.input_col, (list, tuple))
        result = self.fn(*[data[c] for c in self.input_col]) if several \
            else self.fn(data[self.input_col])
        changed = list(data) if isinstance(data, tuple) else copy.copy(data)
        if self.output_col is None and several:
            changed[self.input_col[0]] = result
            for column in sorted(self.input_col[1:], reverse=True):
                del changed[column]
        elif self.output_col is None:
            changed[self.input_col] = result
        elif self.output_col == -1 and not isinstance(changed, dict):
            changed.append(result)
        else:
            changed[self.output_col] = result
        return tuple(changed) if isinstance(data, tuple) else changed

    def __iter__(self):
        for data in self.datapipe:
            yield self._apply(data)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Each batch as tensors, by `default_collate` or another function."""

    def __init__(self, datapipe, conversion=default_collate, collate_fn=None):
        super().__init__(datapipe, collate_fn or conversion or default_collate)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The elements for which `filter_fn`, of them or of their entries `input_col`, is True."""

    def __init__(self, datapipe, filter_fn, input_col=None):
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self):
        for data in self.datapipe:
            if self.input_col is None:
                keep = self.filter_fn(data)
            elif isinstance(self.input_col, (list, tuple)):
                keep = self.filter_fn(*[data[c] for c in self.input_col])
            else:
                keep = self.filter_fn(data[self.input_col])
            if not isinstance(keep, bool):
                raise ValueError("Boolean output is required for `filter_fn` of "
                                 "FilterIterDataPipe, got", type(keep))
            if keep:
                yield data


# ---- order ---------------------------------------------------------------------------------------


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler gives for the pipe."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None,
                 sampler_kwargs=None):
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler = sampler(*(sampler_args or ()), data_source=datapipe,
                               **(sampler_kwargs or {}))

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return _length(self, self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(ShufflingIterDataPipe):
    """The elements in random order, each drawn from a buffer of `buffer_size`."""

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0):
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe.unbatch(unbatch_level=unbatch_level) if unbatch_level \
            else datapipe
        self.buffer_size = buffer_size

    def __len__(self):
        return _length(self, self.datapipe)

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        buffer = []
        for x in self.datapipe:
            if len(buffer) == self.buffer_size:
                i = self._rng.randint(0, len(buffer) - 1)
                x, buffer[i] = buffer[i], x
                yield x
            else:
                buffer.append(x)
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))


# ---- groups --------------------------------------------------------------------------------------


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Groups of `batch_size` elements."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self):
        batch = []
        for x in self.datapipe:
            batch.append(x)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self):
        whole, rest = divmod(_length(self, self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The elements of the groups, `unbatch_level` levels down (-1: of lists of all levels)."""

    def __init__(self, datapipe, unbatch_level=1):
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self):
        for element in self.datapipe:
            yield from self._inside(element, self.unbatch_level)

    def _inside(self, element, level):
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0:
            yield element
        elif isinstance(element, list):
            for inner in element:
                yield from self._inside(inner, max(level - 1, -1))
        elif level == -1:
            yield element
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the "
                             "DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of elements with the same key; a group is given when it has `group_size` elements, or
    when the buffer is full and it is the largest."""

    def __init__(self, datapipe, group_key_fn, *, keep_key=False, buffer_size=10000,
                 group_size=None, guaranteed_group_size=None, drop_remaining=False):
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and not (
                group_size is not None and 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and "
                                 "group_size must be set")
        self.datapipe, self.group_key_fn = datapipe, group_key_fn
        self.keep_key, self.buffer_size = keep_key, buffer_size
        self.group_size, self.drop_remaining = group_size, drop_remaining
        self.guaranteed_group_size = guaranteed_group_size or group_size

    def _given(self, key, group):
        return (key, group) if self.keep_key else group

    def __iter__(self):
        groups, held = defaultdict(list), 0
        for x in self.datapipe:
            key = self.group_key_fn(x)
            groups[key].append(x)
            held += 1
            if len(groups[key]) == self.group_size:
                held -= self.group_size
                yield self._given(key, groups.pop(key))
            if held == self.buffer_size:
                largest = max(groups, key=lambda k: len(groups[k]))
                group = groups.pop(largest)
                held -= len(group)
                enough = (self.guaranteed_group_size is None
                          or len(group) >= self.guaranteed_group_size)
                if not enough and not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(group))
                if enough:
                    yield self._given(largest, group)
        for key in list(groups):
            yield self._given(key, groups.pop(key))


# ---- several sources -----------------------------------------------------------------------------


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """The elements of one pipe after those of another."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self):
        return sum(_length(self, pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of one element of each pipe, until the shortest ends."""

    def __init__(self, *datapipes):
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self):
        yield from zip(*self.datapipes, strict=False)

    def __len__(self):
        return min(_length(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """One element of each pipe in turn, until the shortest ends."""

    def __init__(self, *datapipes):
        self.datapipes = datapipes

    def __iter__(self):
        for row in zip(*self.datapipes, strict=False):
            yield from row

    def __len__(self):
        return min(_length(self, pipe) for pipe in self.datapipes) * len(self.datapipes)


Batcher, Collator, Concater = BatcherIterDataPipe, CollatorIterDataPipe, ConcaterIterDataPipe
Demultiplexer, Filter, Forker = DemultiplexerIterDataPipe, FilterIterDataPipe, ForkerIterDataPipe
Grouper, IterableWrapper = GrouperIterDataPipe, IterableWrapperIterDataPipe
Mapper, Multiplexer, Sampler = MapperIterDataPipe, MultiplexerIterDataPipe, SamplerIterDataPipe
Shuffler = ShufflerIterDataPipe
UnBatcher, Zipper = UnBatcherIterDataPipe, ZipperIterDataPipe
stand_in("utils.data.datapipes.iter.callable", CollatorIterDataPipe, MapperIterDataPipe)
stand_in("utils.data.datapipes.iter.combinatorics", SamplerIterDataPipe, ShufflerIterDataPipe)
stand_in("utils.data.datapipes.iter.combining", ConcaterIterDataPipe, MultiplexerIterDataPipe,
         ZipperIterDataPipe)
stand_in("utils.data.datapipes.iter.grouping", BatcherIterDataPipe, GrouperIterDataPipe,
         UnBatcherIterDataPipe)
stand_in("utils.data.datapipes.iter.selecting", FilterIterDataPipe)
stand_in("utils.data.datapipes.iter.utils", IterableWrapperIterDataPipe)
