"""Which datapipes a datapipe reads from.

>>> from flambeau.utils.data.datapipes.iter import IterableWrapper
>>> source = IterableWrapper([1, 2])
>>> [(found, read)] = traverse_dps(source.batch(2)).values()
>>> found, read == {id(source): (source, {})}
(BatcherIterDataPipe, True)
"""
from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

from flambeau.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

DataPipe = IterDataPipe | MapDataPipe
DataPipeGraph = dict[int, tuple[Any, Any]]


def traverse_dps(datapipe: DataPipe) -> DataPipeGraph:
    """By its id, the datapipe and, in the same form, those it reads from. They are looked for in
    its attributes, and in collections that are attributes."""
    return _graph(datapipe, True, frozenset())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> DataPipeGraph:
    """`traverse_dps`, which also looks into the attributes of other objects, unless
    `only_datapipe`."""
    if only_datapipe is None:
        warnings.warn("`traverse` function and only_datapipe argument will be removed after 1.13. "
                      "Please use `traverse_dps` instead.", FutureWarning, stacklevel=2)
    return _graph(datapipe, bool(only_datapipe), frozenset())


def _graph(datapipe: Any, shallow: bool, above: frozenset[int]) -> DataPipeGraph:
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError("Expected `IterDataPipe` or `MapDataPipe`, but "
                           f"{type(datapipe)} is found")
    if id(datapipe) in above:
        return {}
    above |= {id(datapipe)}
    read: DataPipeGraph = {}
    for each in _connected(vars(datapipe).values(), shallow, {id(datapipe)}):
        read |= _graph(each, shallow, above)
    return {id(datapipe): (datapipe, read)}


def _connected(values: Any, shallow: bool, seen: set[int]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, (str, bytes)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (IterDataPipe, MapDataPipe)):
            found.append(value)
        elif isinstance(value, Mapping):
            found += _connected([*value.keys(), *value.values()], shallow, seen)
        elif isinstance(value, (list, tuple, set, frozenset)) or (
                not shallow and isinstance(value, Collection)):
            found += _connected(value, shallow, seen)
        elif isinstance(getattr(value, "datapipe", None), (IterDataPipe, MapDataPipe)):
            found.append(value.datapipe)            # what the branches of a fork share
        elif not shallow and hasattr(value, "__dict__") and not isinstance(value, type):
            found += _connected(vars(value).values(), shallow, seen)
    return found


__all__ = ["traverse", "traverse_dps"]
