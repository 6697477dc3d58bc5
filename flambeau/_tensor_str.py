"""The parts of printing, under the names of PyTorch's module."""
from __future__ import annotations

from typing import Any

from flambeau._support.printing import (
    _join,
    format_array,
    get_printoptions,
    printoptions,
    real_notation,
    set_printoptions,
    tensor_repr,
)
from flambeau._support.printing import _options as PRINT_OPTS
from flambeau.core.tensor import Tensor

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]

_str = tensor_repr


def _tensor_str(self: Tensor, indent: int) -> str:
    """The numbers alone; the text starts at column `indent`."""
    return format_array(self.detach()._array, indent)


class _Formatter:
    """How the numbers of a tensor are written: all to one width, in one notation.

    >>> _Formatter(torch.tensor([0.5, 10.0])).format(2.25)
    ' 2.2500'
    """

    def __init__(self, tensor: Tensor):
        values = tensor.detach().flatten().tolist()
        self.floating_dtype = tensor.dtype.is_floating_point
        if self.floating_dtype:
            self._write, self.max_width, self.int_mode, self.sci_mode = real_notation(values)
        else:
            self._write, self.int_mode, self.sci_mode = str, True, False
            self.max_width = max([len(str(value)) for value in values], default=1)

    def width(self) -> int:
        """The width of a number."""
        return self.max_width

    def format(self, value: Any) -> str:
        """The text of a number."""
        return self._write(value).rjust(self.max_width)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """A tensor with other text in place of its numbers."""
    return tensor_repr(inp, tensor_contents=tensor_contents)


def _add_suffixes(tensor_str: str, suffixes: Any, indent: int, force_newline: bool) -> str:
    """What follows the numbers, wrapped, and the closing bracket."""
    return _join(tensor_str, list(suffixes), indent, force_newline)
