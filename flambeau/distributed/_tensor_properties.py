"""The type and layout of a tensor, as the metadata of its pieces and of files say it."""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

import flambeau
from flambeau import Tensor

_FORMATS = {"TORCH_CONTIGUOUS_FORMAT": flambeau.contiguous_format,
            "TORCH_CHANNELS_LAST": flambeau.channels_last,
            "TORCH_PRESERVE_FORMAT": flambeau.preserve_format}


@dataclass
class Properties:
    """What both kinds of metadata say. A pickle has an `_encoding` for the memory format."""
    dtype: flambeau.dtype = field(default=flambeau.float32)
    layout: flambeau.layout = field(default=flambeau.strided)
    requires_grad: bool = False
    memory_format: flambeau.memory_format = field(default=flambeau.contiguous_format)
    pin_memory: bool = False
    _encoding: ClassVar[type[Enum]]

    def __getstate__(self) -> tuple[Any, ...]:
        for name, memory_format in _FORMATS.items():
            if memory_format == self.memory_format:
                return (self.dtype, self.layout, self.requires_grad, self._encoding[name],
                        self.pin_memory)
        raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state
        if not isinstance(encoding, self._encoding):
            raise self._unknown(encoding)
        self.memory_format = _FORMATS[encoding.name]

    @staticmethod
    def _unknown(encoding: Any) -> Exception:
        return RuntimeError(f"Invalid torch.memory_format encoding: {encoding}")

    @classmethod
    def create_from_tensor(cls, tensor: Tensor) -> Any:
        """Those of a tensor."""
        return cls(dtype=tensor.dtype, layout=tensor.layout, requires_grad=tensor.requires_grad,
                   memory_format=flambeau.contiguous_format, pin_memory=tensor.is_pinned())
