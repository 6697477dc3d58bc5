"""Dropout of quantised tensors."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor, nn
from flambeau.ao.nn.quantized.modules.utils import _Described


class Dropout(_Described, nn.Dropout):
    """Passes quantised tensors on."""

    def forward(self, input: Tensor) -> Tensor:
        return input

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Dropout:
        """The quantised form of a float module."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Dropout:
        """The quantised form of a float module."""
        return cls(mod.p, mod.inplace)


__all__ = ["Dropout"]
