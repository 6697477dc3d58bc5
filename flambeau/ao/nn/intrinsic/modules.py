"""Float modules in a row that quantisation treats as one.

>>> from flambeau.ao.nn import intrinsic
>>> intrinsic.LinearReLU(nn.Linear(2, 3), nn.ReLU())
LinearReLU(
  (0): Linear(in_features=2, out_features=3, bias=True)
  (1): ReLU()
)
"""
from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any

from flambeau import Tensor, nn
from flambeau._support.lazy.modules import parts
from flambeau._support.own_methods import copy_method
from flambeau._support.signatures import refusing, signed
from flambeau.nn.utils.parametrize import type_before_parametrizations

__all__ = ["BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvBn1d", "ConvBn2d", "ConvBn3d",
           "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d",
           "LinearBn1d", "LinearLeakyReLU", "LinearReLU", "LinearTanh"]


class _FusedModule(nn.Sequential):
    """Modules in a row, of the classes that `_parts` names by argument."""

    _parts: dict[str, type | None] = {}
    _takes: Any

    def __init__(self, *modules: nn.Module, **named: nn.Module):
        self._takes(self, *modules, **named)
        modules += tuple(named.pop(name) for name in list(self._parts)[len(modules):])
        wanted = tuple(self._parts.values())
        if len(modules) != len(wanted) or any(
                kind not in (None, type_before_parametrizations(m))
                for m, kind in zip(modules, wanted)):
            raise AssertionError("Incorrect types for input modules"
                                 + "".join(str(type(m)) for m in modules))
        super().__init__(*modules)


def _fused(name: str, **parts: type | None) -> Any:
    row = " and ".join(kind.__name__ if kind else arg for arg, kind in parts.items())
    made: Any = type(name, (_FusedModule,), {"_parts": parts, "__module__": __name__,
                                             "__doc__": f"{row}, one after the other."})
    copy_method(made, "__init__", _FusedModule.__init__)
    shown = Signature([Parameter(arg, Parameter.POSITIONAL_OR_KEYWORD)
                       for arg in ("self", *parts)])
    signed(shown)(vars(made)["__init__"])
    made._takes = staticmethod(refusing(shown, f"{name}.__init__"))
    return made


LinearReLU = _fused("LinearReLU", linear=nn.Linear, relu=nn.ReLU)
LinearBn1d = _fused("LinearBn1d", linear=nn.Linear, bn=nn.BatchNorm1d)
LinearLeakyReLU = _fused("LinearLeakyReLU", linear=nn.Linear, leaky_relu=nn.LeakyReLU)
LinearTanh = _fused("LinearTanh", linear=nn.Linear, tanh=nn.Tanh)
BNReLU2d = _fused("BNReLU2d", batch_norm=nn.BatchNorm2d, relu=nn.ReLU)
BNReLU3d = _fused("BNReLU3d", batch_norm=nn.BatchNorm3d, relu=nn.ReLU)
ConvReLU1d, ConvReLU2d, ConvReLU3d = (
    _fused(f"ConvReLU{n}d", conv=getattr(nn, f"Conv{n}d"), relu=nn.ReLU) for n in (1, 2, 3))
ConvBn1d, ConvBn2d, ConvBn3d = (
    _fused(f"ConvBn{n}d", conv=getattr(nn, f"Conv{n}d"), bn=getattr(nn, f"BatchNorm{n}d"))
    for n in (1, 2, 3))
ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d = (
    _fused(f"ConvBnReLU{n}d", conv=getattr(nn, f"Conv{n}d"), bn=getattr(nn, f"BatchNorm{n}d"),
           relu=nn.ReLU) for n in (1, 2, 3))


class _WithAddend(_FusedModule):
    """A convolution to whose result something is added; `add` is a function of two tensors."""

    def __init__(self, conv: nn.Module, add: Any, *rest: nn.Module):
        nn.Sequential.__init__(self, conv)
        self.add = add
        for at, module in enumerate(rest, 1):
            self.add_module(str(at), module)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        result = self.add(self[0](x1), x2)
        for module in list(self)[1:]:
            result = module(result)
        return result


class ConvAdd2d(_WithAddend):
    """A `Conv2d` to whose result another tensor is added."""

    def __init__(self, conv: nn.Module, add: Any):
        super().__init__(conv, add)


class ConvAddReLU2d(_WithAddend):
    """`ConvAdd2d` with a `ReLU` behind."""

    def __init__(self, conv: nn.Module, add: Any, relu: nn.Module):
        super().__init__(conv, add)
        self.relu = relu

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.relu(self.add(self[0](x1), x2))

parts(__name__, {
    "fused":
        "ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU ConvBn1d ConvBn2d ConvBnReLU1d "
        "ConvBnReLU2d ConvBn3d ConvBnReLU3d BNReLU2d BNReLU3d LinearBn1d "
        "LinearLeakyReLU LinearTanh ConvAdd2d ConvAddReLU2d"})
