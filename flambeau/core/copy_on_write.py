"""Copy on write: storages that look at the same memory until one of them is written to.

`lazy_clone` gives an array with a storage of its own on the bytes of another. From then on the
arrays of both are read-only; what writes to a tensor calls `own` first, which moves the tensor's
storage, with all tensors that look at it, to new memory, or gives it the old one if nobody else
looks at that any more.

>>> import flambeau
>>> x = flambeau.zeros(2)
>>> y = x._lazy_clone()
>>> is_shared(x._array), is_shared(y._array)
(True, True)
>>> y.add_(1), x
(tensor([1., 1.]), tensor([0., 0.]))
>>> is_shared(x._array), is_shared(y._array)
(True, False)
"""
from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau.kernels.moving.views import array_offset, array_root

if TYPE_CHECKING:
    from flambeau.storage import UntypedStorage


class OwnedArray(np.ndarray):
    """The memory of a storage that has been moved, or that looks at another's; `token` is what the
    storage is known by, wherever its memory is."""

    token: Any = None


class Sharing:
    """What several storages have in common: `roots` by their ids, of those that have not been
    written to yet. Memory that its first storage has left is given back when no other looks at
    it."""

    def __init__(self) -> None:
        self.roots: dict[int, weakref.finalize[Any, Any]] = {}
        self.borrowers = 0
        self.left: np.ndarray | None = None

    def add(self, root: np.ndarray) -> None:
        self.roots[id(root)] = end = weakref.finalize(root, self.remove, id(root))
        end.atexit = False
        _sharings[id(root)] = self

    def remove(self, key: int) -> None:
        self.roots.pop(key).detach()
        if _sharings.get(key) is self:
            del _sharings[key]

    def borrow(self, root: np.ndarray) -> None:
        self.borrowers += 1
        weakref.finalize(root, self.give_back).atexit = False

    def give_back(self) -> None:
        self.borrowers -= 1
        self.release()

    def release(self) -> None:
        if self.left is not None and not self.borrowers and self.left.flags.owndata:
            self.left.resize(0, refcheck=False)     # the object stays: ids are not used again
            self.left = None


_sharings: dict[int, Sharing] = {}


def is_shared(array: np.ndarray) -> bool:
    """Does a storage that has not been written to since it was cloned, or made by cloning, hold
    this array?"""
    return bool(_sharings) and id(array_root(array)) in _sharings


def lazy_clone(array: np.ndarray) -> np.ndarray:
    """An array like this one, of a storage of its own, with the same memory until a write."""
    from flambeau.storage import UntypedStorage
    if not array.size:
        return array.copy(order="K")
    storage = UntypedStorage._of(array_root(array))
    root = storage._root
    sharing = _sharings.get(id(root))
    if sharing is None:
        sharing = Sharing()
        sharing.add(root)
    data: Any = storage._bytes
    root.flags.writeable = data.flags.writeable = True
    # An object that is no array ends the search for what owns the memory.
    memory: Any = (ctypes.c_char * data.nbytes).from_buffer(data)
    twin: Any = np.ndarray.__new__(OwnedArray, data.shape, np.uint8, memory)
    twin.token = object()
    sharing.add(twin)
    sharing.borrow(twin)
    for each in (root, twin, *storage._arrays()):
        each.flags.writeable = False
    return np.ndarray(array.shape, array.dtype, twin, array_offset(array), array.strides)


def own(array: np.ndarray) -> None:
    """Let the storage of a read-only array have its memory for itself, so that it can be written
    to. Arrays that are read-only for other reasons stay so."""
    if not _sharings:
        return
    root = array_root(array)
    sharing = _sharings.get(id(root))
    if sharing is None:
        return
    from flambeau.storage import UntypedStorage
    storage: UntypedStorage = UntypedStorage._of(root)
    sharing.remove(id(root))
    if not sharing.roots:
        for each in (root, *storage._arrays()):
            each.flags.writeable = True
        return
    fresh: Any = np.ndarray.__new__(OwnedArray, (root.nbytes,), np.uint8)
    fresh.token = storage._token
    storage._move(fresh)
    if fresh.token is root:
        sharing.left = root
        sharing.release()


__all__ = ["OwnedArray", "is_shared", "lazy_clone", "own"]
