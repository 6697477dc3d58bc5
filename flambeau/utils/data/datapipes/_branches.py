"""Pipes that share one source: all get each element (`fork`), or one of them does (`demux`)."""

import copy as copying
import warnings
from collections import deque

from flambeau._support.lazy.modules import stand_in
from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import IterDataPipe

_COPIES = {None: lambda x: x, "shallow": copying.copy, "deep": copying.deepcopy}


class _Source:
    """The source of some branches, with the elements that a branch has yet to take.

    A branch that starts again starts a new round for all of them.
    """

    def __init__(self, datapipe, branches, buffer_size, route, overflow):
        self.datapipe, self.buffer_size = datapipe, buffer_size
        self.route, self.overflow = route, overflow
        self.round = 0
        self._new_round(branches)

    def _new_round(self, branches):
        self.round += 1
        self.iterator = None
        self.waiting = [deque() for _ in range(branches)]
        self.started = [False] * branches
        self.ended = [False] * branches

    def start(self, branch):
        if self.started[branch]:
            if not all(self.ended):
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are "
                    "resetting the buffer and each child DataPipe will read from the start again.",
                    stacklevel=4)
            self._new_round(len(self.waiting))
        self.started[branch] = True
        return self.round

    def elements(self, branch):
        number = self.start(branch)
        while self.round == number:
            if not self.waiting[branch] and not self._fetch_for(branch):
                self.ended[branch] = True
                return
            yield self.waiting[branch].popleft()
        raise RuntimeError("This iterator has been invalidated because another iterator has been "
                           "created from one of its siblings")

    def _fetch_for(self, branch):
        if self.iterator is None:
            self.iterator = iter(self.datapipe)
        while not self.waiting[branch]:
            try:
                element = next(self.iterator)
            except StopIteration:
                return False
            for i, value in self.route(element):
                self.waiting[i].append(value)
            others = [len(w) for i, w in enumerate(self.waiting) if i != branch]
            self.overflow(others, self.buffer_size)
        return True


class _ChildDataPipe(IterDataPipe):
    """One of the branches."""

    def __init__(self, main_datapipe, instance_id):
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self):
        yield from self.main_datapipe.elements(self.instance_id)

    def __len__(self):
        return len(self.main_datapipe.datapipe)


def _branches(name, datapipe, num_instances, buffer_size, route, overflow):
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    if buffer_size < 0:
        warnings.warn(f"Unlimited buffer size is set for `{name}`, please be aware of OOM at "
                      "random places", stacklevel=3)
    source = _Source(datapipe, num_instances, buffer_size, route, overflow)
    return [_ChildDataPipe(source, i) for i in range(num_instances)]


def _too_far_apart(waiting, buffer_size):
    if buffer_size >= 0 and max(waiting, default=0) > buffer_size:
        raise BufferError(f"ForkerIterDataPipe buffer overflow,buffer size {buffer_size} is "
                          "insufficient.")


def _too_many(waiting, buffer_size):
    if buffer_size >= 0 and sum(waiting) > buffer_size:
        raise BufferError(f"DemultiplexerIterDataPipe buffer overflow, buffer size {buffer_size} "
                          "is insufficient.")


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """A list of pipes, each of which gives all elements of the source (or `copy` copies them).

    Example::

        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> a, b = IterableWrapper(range(3)).fork(2)
        >>> list(a), list(b)
        ([0, 1, 2], [0, 1, 2])
    """

    def __new__(cls, datapipe, num_instances, buffer_size=1000, copy=None):
        if copy not in _COPIES:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, "
                             "`shallow` or `deep`.")
        if num_instances == 1:
            return [datapipe]
        duplicate = _COPIES[copy]

        def route(element):
            return [(i, duplicate(element)) for i in range(num_instances)]

        return _branches("fork", datapipe, num_instances, buffer_size, route, _too_far_apart)


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """A list of pipes; `classifier_fn` gives the number of the one that an element goes to.

    Example::

        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> even, odd = IterableWrapper(range(5)).demux(2, lambda n: n % 2)
        >>> list(even), list(odd)
        ([0, 2, 4], [1, 3])
    """

    def __new__(cls, datapipe, num_instances, classifier_fn, drop_none=False, buffer_size=1000):
        def route(element):
            branch = classifier_fn(element)
            if branch is None and drop_none:
                return []
            if branch is None or not 0 <= branch < num_instances:
                raise ValueError(f"Output of the classification fn should be between 0 and "
                                 f"{num_instances - 1}. {branch} is returned.")
            return [(branch, element)]

        return _branches("demux", datapipe, num_instances, buffer_size, route, _too_many)
stand_in("utils.data.datapipes.iter.combining", DemultiplexerIterDataPipe, ForkerIterDataPipe)
