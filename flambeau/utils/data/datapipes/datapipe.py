"""The bases of data pipes: datasets that name their steps as methods."""

import functools
import pickle
from typing import Any, TypeVar, get_args, get_origin

from flambeau._support.own_methods import define_in_subclasses
from flambeau.utils._import_utils import dill_available
from flambeau.utils.data.datapipes._hook_iterator import _SnapshotState
from flambeau.utils.data.datapipes._types import DataPipeType
from flambeau.utils.data.dataset import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


@define_in_subclasses()
class _Steps:
    """Registered steps, which are found as methods, how a pipe prints, and how it is pickled."""

    functions: dict[str, Any] = {}
    getstate_hook: Any = None
    reduce_ex_hook: Any = None
    str_hook: Any = None
    repr_hook: Any = None
    type = DataPipeType(Any)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for base in getattr(cls, "__orig_bases__", ()):
            if isinstance(get_origin(base), type) and issubclass(get_origin(base), _Steps):
                cls.type = DataPipeType(get_args(base)[0])

    def __getattr__(self, attribute_name):
        if attribute_name in type(self).functions:
            return functools.partial(type(self).functions[attribute_name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute_name}'")

    @classmethod
    def register_function(cls, function_name, function):
        """Make `function(pipe, ...)` a method of all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register):
        """Make a pipe of class `cls_to_register` by the method `function_name` of its source."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is "
                            "already taken")

        @functools.wraps(cls_to_register, updated=())
        def make(source, *args, **kwargs):
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = make

    def __dir__(self):
        return sorted({*super().__dir__(), *self.functions})

    def __repr__(self):
        hook = type(self).repr_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __str__(self):
        hook = type(self).str_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __getstate__(self):
        return self._state()

    def _state(self):
        hook = type(self).getstate_hook
        return self.__dict__ if hook is None else hook(self.__dict__)

    def __reduce_ex__(self, *args, **kwargs):
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    @classmethod
    def set_getstate_hook(cls, hook_fn):
        """Pickle `hook_fn(attributes)` as the state of pipes; None for the attributes."""
        cls._set_hook("getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn):
        """Reduce pipes by `hook_fn(pipe)`, which may raise NotImplementedError; None for Python's
        way."""
        cls._set_hook("reduce_ex_hook", hook_fn)

    @classmethod
    def _set_hook(cls, name, hook_fn):
        if hook_fn is not None and getattr(cls, name) is not None:
            raise RuntimeError(f"Attempt to override existing {name}")
        setattr(cls, name, hook_fn)


class IterDataPipe(_Steps, IterableDataset[_T_co]):
    """A pipe that gives its elements one after another; one iteration at a time.

    Example::

        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(range(6)).filter(lambda n: n % 2 == 1).map(lambda n: n * n)
        >>> list(pipe.batch(2))
        [[1, 9], [25]]
    """

    functions: dict[str, Any] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator: Any = None

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register,
                                      enable_df_api_tracing=False):
        """Make a pipe of class `cls_to_register` by the method `function_name` of its source."""
        super().register_datapipe_as_function(function_name, cls_to_register)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__iter__" in vars(cls):
            cls.__iter__ = _one_at_a_time(cls.__iter__)

    def reset(self):
        """Go back to the start, before each iteration; for pipes that keep a state."""

    def __iter__(self):
        raise NotImplementedError


def _one_at_a_time(function):
    """An `__iter__` that resets the pipe and ends the iteration that was going on."""
    @functools.wraps(function)
    def iterate(self):
        number = self._valid_iterator_id
        self._valid_iterator_id = 0 if number is None else number + 1
        self._number_of_samples_yielded = 0
        self._snapshot_state = _SnapshotState.Iterating
        self.reset()
        return _Iteration(self, function(self), self._valid_iterator_id)
    return iterate


class _Iteration:
    """An iterator that is good until its pipe is iterated again."""

    def __init__(self, pipe, iterator, number):
        self.pipe, self.iterator, self.number = pipe, iterator, number

    def __iter__(self):
        return self

    def __next__(self):
        if self.number != self.pipe._valid_iterator_id:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from "
                f"the same IterDataPipe: {self.pipe!r}\nThis may be caused multiple references to "
                "the same IterDataPipe. We recommend using `.fork()` if that is necessary.")
        element = next(self.iterator)
        self.pipe._number_of_samples_yielded += 1
        return element


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames."""


class MapDataPipe(_Steps, Dataset[_T_co]):
    """A pipe that gives the element of a key.

    Example::

        >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper(range(10)).map(lambda n: n * n)[3]
        9
    """

    functions: dict[str, Any] = {}


class DataChunk(list):
    """Some elements that a pipe gives together; `raw_iterator` goes through them."""

    def __init__(self, items):
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent=""):
        """The elements in brackets."""
        return indent + "[" + ", ".join(str(i) for i in iter(self)) + "]"

    def raw_iterator(self):
        """An iterator over the elements as they were given."""
        yield from self.items


class _DataPipeSerializationWrapper:
    """Carries a pipe to another process: what pickle cannot take (lambdas), dill takes."""

    def __init__(self, datapipe):
        self._datapipe = datapipe

    def __getstate__(self):
        try:
            return pickle.dumps(self._datapipe), False
        except Exception:
            if not dill_available():
                raise
            import dill
            return dill.dumps(self._datapipe), True

    def __setstate__(self, state):
        data, by_dill = state
        if by_dill:
            import dill as pickler
        else:
            pickler = pickle
        self._datapipe = pickler.loads(data)

    def __len__(self):
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):
    def __init__(self, datapipe: IterDataPipe):
        super().__init__(datapipe)
        self._datapipe_iter: Any = None

    def __iter__(self):
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):
    def __getitem__(self, idx):
        return self._datapipe[idx]
