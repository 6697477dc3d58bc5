"""Smooth activations, and gates."""
from __future__ import annotations

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn import functional as F
from flambeau.nn.modules.activation.rectifiers import _InplaceActivation
from flambeau.nn.modules.module import Module

__all__ = ["GELU", "GLU", "LogSigmoid", "Mish", "SiLU", "Sigmoid", "Softplus", "Softsign", "Tanh",
           "Tanhshrink"]


class SiLU(_InplaceActivation):
    r""":math:`x \, \sigma(x)`, also called swish.

    Example:
        >>> nn.SiLU()(flambeau.tensor([0.0, 10.0]))
        tensor([0.0000, 9.9995])
    """

    _function = "silu"


class Mish(_InplaceActivation):
    r""":math:`x \tanh(\ln(1 + e^x))`. Misra, 2019.

    Example:
        >>> nn.Mish()(flambeau.tensor([0.0]))
        tensor([0.])
    """

    _function = "mish"


@define_in_subclasses("forward")
class _Activation(Module):
    """An activation without options."""

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input)


class Sigmoid(_Activation):
    r""":math:`\sigma(x) = 1/(1 + e^{-x})`.

    Example:
        >>> nn.Sigmoid()(flambeau.tensor([0.0]))
        tensor([0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return flambeau.sigmoid(input)


class Tanh(_Activation):
    r""":math:`\tanh(x)`.

    Example:
        >>> nn.Tanh()(flambeau.tensor([0.0]))
        tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return flambeau.tanh(input)


class LogSigmoid(_Activation):
    r""":math:`\ln \sigma(x)`.

    Example:
        >>> nn.LogSigmoid()(flambeau.tensor([0.0]))
        tensor([-0.6931])
    """

    _function = "logsigmoid"


class Softsign(_Activation):
    r""":math:`x/(1 + |x|)`.

    Example:
        >>> nn.Softsign()(flambeau.tensor([1.0]))
        tensor([0.5000])
    """

    _function = "softsign"


class Tanhshrink(_Activation):
    r""":math:`x - \tanh(x)`.

    Example:
        >>> nn.Tanhshrink()(flambeau.tensor([0.0]))
        tensor([0.])
    """

    _function = "tanhshrink"


class GLU(Module):
    r""":math:`a \, \sigma(b)` with a and b the two halves of the input along `dim`.

    Dauphin et al., Language modeling with gated convolutional networks, ICML 2017.

    Example:
        >>> nn.GLU()(flambeau.tensor([2.0, 0.0]))
        tensor([1.])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    r""":math:`x \, \Phi(x)`, Φ being the normal distribution; ``'tanh'`` approximates it.

    Hendrycks and Gimpel, 2016.

    Example:
        >>> nn.GELU()(flambeau.tensor([1.0]))
        tensor([0.8413])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    r""":math:`\ln(1 + e^{\beta x})/\beta`; x itself where βx exceeds `threshold`.

    Example:
        >>> nn.Softplus()(flambeau.tensor([0.0]))
        tensor([0.6931])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"
