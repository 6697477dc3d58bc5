"""What functions that change modules in place know of them."""
from __future__ import annotations

import weakref
from typing import Any

from flambeau import nn


class _State:
    """What is known of a module."""


_module_state_mapping: weakref.WeakKeyDictionary[nn.Module, Any] = weakref.WeakKeyDictionary()


def _insert_module_state(module: nn.Module, state: _State) -> None:
    """Remember what is known of a module; once."""
    if module in _module_state_mapping:
        raise AssertionError(f"Inserting {module} more than once.")
    _module_state_mapping[module] = weakref.ref(state)


def _get_module_state(module: nn.Module) -> _State | None:
    """What is known of a module; None if it is nothing."""
    if isinstance(module, _State):
        return module
    found = _module_state_mapping.get(module)
    if found is None:
        return None
    state = found()
    if state is None:
        raise AssertionError("State has already been garbage collected")
    return state
