"""Marks for where numbers are to be quantised, and wrappers with such marks."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor, nn
from flambeau._support.own_methods import copy_inherited


class QuantStub(nn.Module):
    """A mark: from here on numbers are to be quantised. It passes them on."""

    def __init__(self, qconfig: Any = None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


@copy_inherited("__init__", "forward")
class DeQuantStub(QuantStub):
    """A mark: from here on numbers are to be floating-point. It passes them on."""


class QuantWrapper(nn.Module):
    """A module between a `QuantStub` and a `DeQuantStub`."""

    def __init__(self, module: nn.Module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant = QuantStub(qconfig), DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        return self.dequant(self.module(self.quant(X)))


__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]
