"""How some ops of tensors are written with version 11 of ONNX's ops; `g.op` makes a node."""
from __future__ import annotations

from typing import Any


def unsqueeze(g: Any, self: Any, dim: int) -> Any:
    """A dimension of size one."""
    return g.op("Unsqueeze", self, axes_i=[dim])


def squeeze(g: Any, self: Any, dim: int | None = None) -> Any:
    """Without a dimension of size one, or without all of them."""
    return g.op("Squeeze", self, **({} if dim is None else {"axes_i": [dim]}))


def select(g: Any, self: Any, dim: int, index: Any) -> Any:
    """One index of a dimension."""
    return g.op("Gather", self, index, axis_i=dim)


__all__: list[str] = []
