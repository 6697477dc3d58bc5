"""The parts of printing, under the names of PyTorch's module."""
from __future__ import annotations

from typing import Any

from flambeau._support.printing import (
    _join,
    format_array,
    printoptions,
    set_printoptions,
    tensor_repr,
)
from flambeau._support.printing import _options as PRINT_OPTS
from flambeau.core.tensor import Tensor

__all__ = ["PRINT_OPTS", "printoptions", "set_printoptions"]

_str = tensor_repr


def _tensor_str(self: Tensor, indent: int) -> str:
    """The numbers alone; the text starts at column `indent`."""
    return format_array(self.detach()._array, indent)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """A tensor with other text in place of its numbers."""
    return tensor_repr(inp, tensor_contents=tensor_contents)


def _add_suffixes(tensor_str: str, suffixes: Any, indent: int, force_newline: bool) -> str:
    """What follows the numbers, wrapped, and the closing bracket."""
    return _join(tensor_str, list(suffixes), indent, force_newline)
