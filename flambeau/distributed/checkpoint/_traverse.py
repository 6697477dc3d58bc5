"""Walks through nested states: dicts and lists."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from flambeau import Tensor

__all__ = ["get_element", "print_tensor", "set_element", "traverse_state_dict"]

PATH_ITEM = str | int
OBJ_PATH = tuple[PATH_ITEM, ...]


def _is_terminal(value: object, keep: Callable[[object], bool]) -> bool:
    """Is there nothing inside that asks for a walk?"""
    values: Collection[Any]
    if isinstance(value, Mapping):
        return False
    if isinstance(value, list):
        values = value
    else:
        return True
    return not any((isinstance(entry, (Mapping, list)) and not _is_terminal(entry, keep))
                   or keep(entry) for entry in values)


def _keep_visiting_tensors(value: object) -> bool:
    return isinstance(value, Tensor)


def traverse_state_dict(state_dict: dict[str, Any], visitor: Callable[[OBJ_PATH, Any], None],
                        keep_traversing: Callable[[Any], bool] = _keep_visiting_tensors) -> None:
    """Call `visitor(path, value)` for each value in nested dicts and lists; tuples are values,
    and lists in which there is neither a dict nor a tensor."""
    def walk(path: OBJ_PATH, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, entry in value.items():
                walk((*path, str(key)), entry)
        elif _is_terminal(value, keep_traversing):
            visitor(path, value)
        else:
            for i, entry in enumerate(value):
                walk((*path, i), entry)
    for key, value in state_dict.items():
        walk((str(key),), value)


def traverse_state_dict_v_2_3(state_dict: dict[str, Any],
                              visitor: Callable[[OBJ_PATH, Any], None],
                              keep_traversing: Callable[[Any], bool] = _keep_visiting_tensors
                              ) -> None:
    """As `traverse_state_dict` was in PyTorch 2.3: dicts without tensors are values too."""
    def holds(value: Any) -> bool:
        entries = value.values() if isinstance(value, Mapping) else value
        return any(holds(e) if isinstance(e, (Mapping, list)) else keep_traversing(e)
                   for e in entries)

    def walk(path: OBJ_PATH, value: Any) -> None:
        if not isinstance(value, (Mapping, list)) or not holds(value):
            visitor(path, value)
        else:
            parts: Any = ((str(key), entry) for key, entry in value.items()) \
                if isinstance(value, Mapping) else enumerate(value)
            for key, entry in parts:
                walk((*path, key), entry)
    for key, value in state_dict.items():
        walk((str(key),), value)


def set_element(root_dict: dict[str, Any], path: OBJ_PATH, value: object) -> None:
    """Put a value to its place, with the dicts and lists on the way to it.

    >>> root = {}
    >>> set_element(root, ("a", 1), 3)
    >>> root
    {'a': [None, 3]}
    """
    current: Any = root_dict
    for key, following in zip(path, path[1:]):
        empty: Any = {} if isinstance(following, str) else []
        if isinstance(current, Mapping):
            current = current.setdefault(key, empty)        # type: ignore[attr-defined]
        else:
            _extend(current, key)
            if current[key] is None:
                current[key] = empty
            current = current[key]
    if isinstance(path[-1], int):
        _extend(current, path[-1])
    current[path[-1]] = value


def _extend(values: list[Any], index: Any) -> None:
    while len(values) <= index:
        values.append(None)


def get_element(root_dict: dict[str, Any], path: OBJ_PATH, default_value: Any = None) -> Any:
    """The value at a place; `default_value` if there is none."""
    current: Any = root_dict
    for key in path:
        if isinstance(key, int):
            if not isinstance(current, list) or len(current) <= key:
                return default_value
        elif not isinstance(current, Mapping) or key not in current:
            return default_value
        current = current[key]
    return current


def _print_nested(value: object, prefix: str = "",
                  print_fun: Callable[[str], None] = print) -> None:
    """Print a tensor, and the pieces of one that is distributed."""
    from flambeau.distributed._shard.sharded_tensor import ShardedTensor
    from flambeau.distributed.tensor import DTensor
    if isinstance(value, ShardedTensor):
        print_fun(f"{prefix} ShardedTensor size: {value.size()}")
        for shard in value.local_shards():
            _print_nested(shard.tensor, f"{shard.metadata.shard_offsets} ", print_fun=print_fun)
    elif isinstance(value, DTensor):
        print_fun(f"{prefix} DistributedTensor size: {value.size()}")
        _print_nested(value._local_tensor, print_fun=print_fun)
    elif isinstance(value, Tensor):
        print_fun(f"{prefix} Tensor size: {value.size()}")
    else:
        print_fun(f"{prefix} Type: {type(value)}")


def print_tensor(path: OBJ_PATH, value: object, print_fun: Callable[[str], None] = print) -> None:
    """A visitor for `traverse_state_dict` that prints."""
    _print_nested(value, prefix=str(path), print_fun=print_fun)
