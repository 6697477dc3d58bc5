"""Nested states as flat ones with dotted names, and back."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.distributed.checkpoint._traverse import OBJ_PATH, set_element, traverse_state_dict

FLATTEN_MAPPING = dict[str, OBJ_PATH]


def flatten_state_dict(state_dict: dict[str, Any]) -> tuple[dict[str, Any], FLATTEN_MAPPING]:
    """A flat state, and the place of each of its values in the nested one.

    >>> flatten_state_dict({"a": {"b": 1}})
    ({'a.b': 1}, {'a.b': ('a', 'b')})
    """
    return _flattened(state_dict, traverse_state_dict)


def _flattened(state_dict: dict[str, Any], traverse: Callable[..., None]
               ) -> tuple[dict[str, Any], FLATTEN_MAPPING]:
    flattened: dict[str, Any] = {}
    mappings: FLATTEN_MAPPING = {}

    def visit(path: OBJ_PATH, value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flattened:
            raise ValueError(f"duplicated flatten key {name}")
        flattened[name], mappings[name] = value, path
    traverse(state_dict, visit)
    return flattened, mappings


def unflatten_state_dict(state_dict: dict[str, Any], mapping: FLATTEN_MAPPING) -> dict[str, Any]:
    """The nested state of a flat one."""
    nested: dict[str, Any] = {}
    for key, value in state_dict.items():
        set_element(nested, mapping[key], value)
    return nested
