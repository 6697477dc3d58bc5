"""Dictionaries whose keys are held weakly and are equal only if they are the same object, as
tensors must be: `==` of two tensors is a tensor.

>>> sizes = WeakTensorKeyDictionary()
>>> a, b = flambeau.ones(2), flambeau.ones(2)
>>> sizes[a] = "a"
>>> a in sizes, b in sizes
(True, False)
>>> del a
>>> len(sizes)
0
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any
from weakref import ref

from flambeau.core.tensor import Tensor


class WeakIdRef(ref):
    """A weak reference that is equal to another if both are to the same object, alive."""

    __slots__ = ("_id",)
    _hash: Callable[[Any], int] = staticmethod(id)
    _same: Callable[[Any, Any], bool] = staticmethod(operator.is_)

    def __init__(self, key: Any, callback: Callable[[Any], None] | None = None):
        self._id = self._hash(key)
        super().__init__(key, callback)                             # type: ignore[call-arg]

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        if mine is not None and isinstance(other, ref):
            theirs = other()
            if theirs is not None:
                return self._same(mine, theirs)
        return self is other


class _WeakHashRef(WeakIdRef):
    """A weak reference that keeps the hash of what it refers to, and compares by its equality."""

    __slots__ = ()
    _hash, _same = staticmethod(hash), staticmethod(operator.eq)


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict with weak keys that are compared by identity. An entry goes when its key does."""

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: Any = WeakIdRef):
        self.data: Any = {}
        self.ref_type = ref_type
        entries = self.data

        def remove(key: Any) -> None:
            entries.pop(key, None)
        self._remove = remove
        if dict is not None:
            self.update(dict)

    def _alive(self) -> Iterator[tuple[Any, Any]]:
        """Keys and values; each key stays alive until it has been looked at."""
        for reference, value in list(self.data.items()):
            key = reference()
            if key is not None:
                yield key, value

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return sum(1 for _ in self._alive())

    def __iter__(self) -> Iterator[Any]:
        """The keys that are alive."""
        return (key for key, _ in self._alive())

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:               # nothing that can be referred to weakly
            return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list[Any]:
        """The weak references to the keys."""
        return list(self.data)

    def items(self) -> Any:
        """Keys and values."""
        return self._alive()

    keys = __iter__                                                 # type: ignore[assignment]

    def values(self) -> Any:
        """The values."""
        return (value for _, value in self._alive())

    def popitem(self) -> tuple[Any, Any]:
        """Take out the entry that came last."""
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return self.data.get(self.ref_type(key), default)

    def pop(self, key: Any, *args: Any) -> Any:
        """Take out a value."""
        return self.data.pop(self.ref_type(key), *args)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of a key, which is the default if there is none."""
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def copy(self) -> WeakIdKeyDictionary:
        """A dictionary with the same entries."""
        made = type(self)(ref_type=self.ref_type)
        for key, value in self._alive():
            made[key] = value
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        from copy import deepcopy
        made = type(self)(ref_type=self.ref_type)
        for key, value in self._alive():
            made[key] = deepcopy(value, memo)
        return made

    def update(self, dict: Any = None, **kwargs: Any) -> None:
        """Take over the entries of another dictionary, or of pairs."""
        pairs = dict.items() if hasattr(dict, "items") else dict or ()
        for key, value in (*pairs, *kwargs.items()):
            self[key] = value

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(other, self.ref_type)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; `ref()` gives the tensor, or None when it is gone."""

    __slots__ = ("ref",)

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]
