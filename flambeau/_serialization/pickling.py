"""Objects as pickles in which tensors and names are PyTorch's."""
from __future__ import annotations

import operator
import pickle
from typing import Any

import flambeau
from flambeau._serialization.checkpoint_names import global_name, reduce_for_checkpoint
from flambeau._serialization.locations import location_tag
from flambeau._serialization.quick_pickler import NeedsNames, quick_pickle
from flambeau.core.tensor import TensorMeta
from flambeau.storage import TypedStorage, UntypedStorage


class Storages:
    """The storages that a pickle refers to, numbered in the order of their appearance."""

    def __init__(self) -> None:
        self.keys: dict[int, str] = {}
        self.found: list[UntypedStorage] = []
        self.dtypes: list[Any] = []

    def clear(self) -> None:
        for each in (self.keys, self.found, self.dtypes):
            each.clear()

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        if isinstance(obj, TypedStorage):
            storage, dtype = obj.untyped(), obj.dtype
            kind, count = getattr(flambeau.storage, obj.pickle_storage_type()), len(obj)
        elif isinstance(obj, UntypedStorage):
            storage, dtype, kind, count = obj, flambeau.uint8, UntypedStorage, len(obj)
        else:
            return None
        key = self.keys.get(id(storage))
        if key is None:
            key = self.keys[id(storage)] = str(len(self.found))
            self.found.append(storage)
            self.dtypes.append(dtype)
        elif self.dtypes[int(key)] is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data "
                               "as different types")
        return "storage", kind, key, location_tag(storage), count


class StoragesWithViews(Storages):
    """The old form has a fifth item: the storage as a view of another."""

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        reference = super().persistent_id(obj)
        return reference and (*reference, None)


# values of which most of a pickle is made, which are never written in another way
_PLAIN = frozenset({int, bool, str, tuple, type(None)})


# the one in Python: the C one does not let names be changed
_PythonPickler: Any = pickle._Pickler


class CheckpointPickler(_PythonPickler):
    """Writes flambeau's objects under PyTorch's names, whatever this package was imported as."""

    def __init__(self, file: Any, protocol: int, storages: Storages):
        super().__init__(file, protocol)
        self.persistent_id = storages.persistent_id

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if type(obj) not in _PLAIN or self.proto >= 4:      # which has frames to look after
            return super().save(obj, save_persistent_id)
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
        else:
            self.dispatch[type(obj)](self, obj)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, flambeau.dtype | flambeau.qscheme):
            return repr(obj).removeprefix("torch.")
        if isinstance(obj, TensorMeta):
            return obj.__qualname__
        return reduce_for_checkpoint(obj)

    def name_of(self, obj: Any, name: str) -> tuple[str, str] | None:
        """The module and name under which to write what is written by name; None for Python's."""
        return global_name(obj, name)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        known = self.name_of(obj, name or getattr(obj, "__qualname__", None) or obj.__name__)
        if known is None:
            return super().save_global(obj, name)
        if self.proto >= 4:
            self.save(known[0])
            self.save(known[1])
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + "{}\n{}\n".format(*known).encode())
        self.memoize(obj)

    def save_type(self, obj: type) -> None:
        if obj in (type(None), type(NotImplemented), type(...)):
            return super().save_type(obj)
        return self.save_global(obj)

    dispatch = {**_PythonPickler.dispatch, type: save_type,
                type(lambda: 0): save_global}


def write_pickle(obj: Any, file: Any, pickle_module: Any, protocol: int,
                 storages: Storages) -> None:
    if pickle_module is pickle:
        protocol = pickle.DEFAULT_PROTOCOL if protocol is None else operator.index(protocol)
        if 2 <= protocol < 4:
            try:
                file.write(quick_pickle(obj, protocol, storages))
                return
            except NeedsNames:
                storages.clear()
        CheckpointPickler(file, protocol, storages).dump(obj)
        return

    class Pickler(pickle_module.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return storages.persistent_id(obj)

        def reducer_override(self, obj: Any) -> Any:
            reduced = reduce_for_checkpoint(obj)
            if reduced is NotImplemented and hasattr(super(), "reducer_override"):
                return super().reducer_override(obj)
            return reduced

    Pickler(file, protocol).dump(obj)
