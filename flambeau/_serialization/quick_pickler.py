"""Pickles of tensors in plain containers, such as a `state_dict`, by the pickler in C.

That one writes functions and classes under the names that they have in Python only. What stands for
PyTorch's here lives in modules whose names begin with a mark that no data contains by chance; the
mark is taken out of the finished pickle.
"""
from __future__ import annotations

import io
import pickle
import secrets
import sys
from types import ModuleType
from typing import Any

from flambeau import Tensor
from flambeau._serialization.checkpoint_names import (
    global_name,
    is_parameter_type,
    rebuild_parameter,
    rebuild_tensor_v2,
    reduce_for_checkpoint,
)
from flambeau.core.shapes import Size

_MARK = f"<{secrets.token_hex(16)}>"
_PLAIN = frozenset({int, bool, str, tuple, float, dict, list, type(None)})
_CALLS = (rebuild_tensor_v2, rebuild_parameter, Size)


class NeedsNames(Exception):
    """The object holds something else of flambeau's that has another name in files."""


class _Named:
    """What is written under a name of PyTorch's."""

    def __init__(self, module: str, name: str) -> None:
        self.__module__, self.name = module, name

    def __call__(self) -> None:     # the pickler asks whether it could be called
        raise TypeError("a name cannot be called")


_named: dict[int, tuple[_Named, Any]] = {}


def _name_of(obj: Any) -> _Named:
    """What stands for a function or class; the same one each time."""
    known = _named.get(id(obj))
    if known is not None:
        return known[0]
    found = global_name(obj, obj.__qualname__)
    if found is None:
        raise NeedsNames
    parent = ""
    for part in found[0].split("."):
        parent = f"{parent}.{part}" if parent else _MARK + part
        sys.modules.setdefault(parent, ModuleType(parent))
    name = _Named(parent, found[1])
    setattr(sys.modules[parent], found[1], name)
    return _named.setdefault(id(obj), (name, obj))[0]


def _is_ours(obj: Any) -> bool:
    """Does this have, in files, one of PyTorch's names?"""
    found = global_name(obj, "")
    return found is not None and found[0].partition(".")[0] == "torch"


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, protocol: int, storages: Any) -> None:
        super().__init__(file, protocol)
        self.storages = storages

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) in _PLAIN:
            return None
        found = self.storages.persistent_id(obj)
        return found and (found[0], _name_of(found[1]), *found[2:])

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is _Named:
            return obj.name
        if kind is Tensor or kind is Size or is_parameter_type(kind):
            function, args = reduce_for_checkpoint(obj)
            if function in _CALLS:
                return _name_of(function), args
        if _is_ours(obj) or _is_ours(kind) or reduce_for_checkpoint(obj) is not NotImplemented:
            raise NeedsNames
        return NotImplemented


def quick_pickle(obj: Any, protocol: int, storages: Any) -> bytes:
    """The pickle of an object in a protocol below 4. Raises `NeedsNames` where it takes the pickler
    that is written in Python."""
    file = io.BytesIO()
    _Pickler(file, protocol, storages).dump(obj)
    return file.getvalue().replace(_MARK.encode(), b"")
