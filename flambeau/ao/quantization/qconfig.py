"""`QConfig`: how activations and weights are to be quantised; and marks for where."""
from __future__ import annotations

from typing import Any, NamedTuple

from flambeau import Tensor, nn


class _Choice(NamedTuple):
    activation: Any
    weight: Any


class QConfig(_Choice):
    """Classes of observers (or fake-quantising modules), or what `with_args` makes of them, for
    `activation` and `weight`."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError("QConfig received observer instance, please pass observer class "
                             "instead. Use MyObserver.with_args(x=1) to override arguments to "
                             "constructor if needed")
        return super().__new__(cls, activation, weight)


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Do two configurations say the same?"""
    return (q1 is None) == (q2 is None) and (q1 is None or tuple(q1) == tuple(q2))


class QuantStub(nn.Module):
    """A mark: from here on numbers are to be quantised. It passes them on."""

    def __init__(self, qconfig: Any = None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


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


def add_quant_dequant(module: nn.Module) -> nn.Module:
    """Wrap every module without children that has a `qconfig` in a `QuantWrapper`, in place."""
    if not list(module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        setattr(module, name, add_quant_dequant(child))
    return module
