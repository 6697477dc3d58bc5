"""Small helpers of the layers: sizes given as a number or as a tuple."""

from __future__ import annotations

import collections
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse"):
    """A function that makes an n-tuple of a number, and a tuple of an iterable."""

    def parse(x):
        if isinstance(x, collections.abc.Iterable):
            return tuple(x)
        return tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t, n: int):
    """(a, b) with n = 2 → (b, b, a, a): the order in which `F.pad` wants per-side padding."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    """`out_size` with the last entries of `defaults` in place of None."""
    if isinstance(out_size, (int, float)):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size):])]


def _unusual(module: Any, **usual: Any) -> str:
    """What `extra_repr` says of the attributes that do not have their usual values."""
    text = ""
    for name, value in usual.items():
        own = getattr(module, name, value)
        if own is not value if value is None or isinstance(value, bool) else own != value:
            text += f", {name}={own}"
    return text


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Strip `prefix` from the keys of a state dict, in place: ``module.fc.bias`` → ``fc.bias``."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        if key == prefix.rstrip("."):  # the wrapped module itself
            metadata[""] = metadata.pop(key)
        elif key.startswith(prefix):
            metadata[key[len(prefix):]] = metadata.pop(key)
