"""Activation functions, element by element unless a dimension is named."""

from __future__ import annotations

import warnings

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import adopt, each_its_own
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter

from .attention import MultiheadAttention
from .module import Module

__all__ = ["CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish",
           "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "MultiheadAttention",
           "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin",
           "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold"]


@each_its_own("__init__", "forward", "extra_repr")
class _InplaceActivation(Module):
    """An activation whose only option is to overwrite its input."""

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InplaceActivation):
    r""":math:`\max(0, x)`.

    Example:
        >>> nn.ReLU()(flambeau.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


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


class SELU(_InplaceActivation):
    r""":math:`s\,(\max(0, x) + \min(0, \alpha(e^x - 1)))` with s = 1.0507…, α = 1.6732….

    Keeps mean 0 and variance 1 from layer to layer. Klambauer et al., NeurIPS 2017.

    Example:
        >>> nn.SELU()(flambeau.tensor([1.0]))
        tensor([1.0507])
    """

    _function = "selu"


class Hardsigmoid(_InplaceActivation):
    r"""0 up to -3, 1 from 3 on, :math:`x/6 + 1/2` between.

    Example:
        >>> nn.Hardsigmoid()(flambeau.tensor([-4.0, 0.0, 4.0]))
        tensor([0.0000, 0.5000, 1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_InplaceActivation):
    r""":math:`x` times `Hardsigmoid`. Howard et al., MobileNetV3, ICCV 2019.

    Example:
        >>> nn.Hardswish()(flambeau.tensor([-4.0, 4.0]))
        tensor([-0., 4.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Threshold(Module):
    """The input where it is above `threshold`, else `value`.

    Example:
        >>> nn.Threshold(0.5, 20.0)(flambeau.tensor([0.1, 0.9]))
        tensor([20.0000,  0.9000])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"threshold={self.threshold}, value={self.value}{inplace}"


class RReLU(Module):
    """A `LeakyReLU` whose slope is drawn from U(lower, upper), element by element, in training,
    and is the mean of the two in evaluation. Xu et al., 2015.

    Example:
        >>> nn.RReLU(0.1, 0.3).eval()(flambeau.tensor([-1.0, 1.0]))
        tensor([-0.2000,  1.0000])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3,
                 inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"lower={self.lower}, upper={self.upper}{inplace}"


class Hardtanh(Module):
    """The input clipped to [min_val, max_val].

    Example:
        >>> nn.Hardtanh(-2, 2)(flambeau.tensor([-3.0, 1.0]))
        tensor([-2.,  1.])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
                 min_value: float | None = None, max_value: float | None = None) -> None:
        super().__init__()
        for old, new, given in (("min_value", "min_val", min_value),
                                ("max_value", "max_val", max_value)):
            if given is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and renamed to `{new}`",
                    FutureWarning, stacklevel=2)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"min_val={self.min_val}, max_val={self.max_val}{inplace}"


class ReLU6(Hardtanh):
    r""":math:`\min(\max(0, x), 6)`.

    Example:
        >>> nn.ReLU6()(flambeau.tensor([-1.0, 9.0]))
        tensor([0., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


@each_its_own("forward")
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


@each_its_own("__init__", "forward", "extra_repr")
class _AlphaActivation(Module):
    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"alpha={self.alpha}{inplace}"


class ELU(_AlphaActivation):
    r"""x above 0, :math:`\alpha (e^x - 1)` below. Clevert et al., ICLR 2016.

    Example:
        >>> nn.ELU()(flambeau.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """

    _function = "elu"


class CELU(_AlphaActivation):
    r""":math:`\max(0, x) + \min(0, \alpha (e^{x/\alpha} - 1))`. Barron, 2017.

    Example:
        >>> nn.CELU(2.0)(flambeau.tensor([3.0]))
        tensor([3.])
    """

    _function = "celu"


class LeakyReLU(Module):
    r""":math:`\max(0, x) + a \min(0, x)`, a being `negative_slope`.

    Example:
        >>> nn.LeakyReLU(0.1)(flambeau.tensor([-1.0, 2.0]))
        tensor([-0.1000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"negative_slope={self.negative_slope}{inplace}"


class PReLU(Module):
    """A `LeakyReLU` whose slope is learned, one for all channels or one for each.

    He et al., Delving deep into rectifiers, ICCV 2015.

    Example:
        >>> nn.PReLU()(flambeau.tensor([-1.0])).item()
        -0.25
    """

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None,
                 dtype=None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(flambeau.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all slopes to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


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


@each_its_own("__init__", "forward", "extra_repr")
class _Shrink(Module):
    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """The input where its absolute value exceeds `lambd`, else 0.

    Example:
        >>> nn.Hardshrink()(flambeau.tensor([0.3, 0.7]))
        tensor([0.0000, 0.7000])
    """

    _function = "hardshrink"


class Softshrink(_Shrink):
    """The input moved towards 0 by `lambd`.

    Example:
        >>> nn.Softshrink()(flambeau.tensor([0.25, -1.5]))
        tensor([ 0., -1.])
    """

    _function = "softshrink"


@each_its_own("__init__", "forward", "extra_repr")
class _OverDimension(Module):
    __constants__ = ["dim"]
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "dim"):
            self.dim = None

    def forward(self, input: Tensor) -> Tensor:
        # The stack level is that of the user's call, for the warning about a missing dim.
        return getattr(F, self._function)(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_OverDimension):
    r""":math:`e^{x_i} / \sum_j e^{x_j}` along `dim`.

    Example:
        >>> nn.Softmax(dim=0)(flambeau.zeros(2))
        tensor([0.5000, 0.5000])
    """

    _function = "softmax"


class Softmin(_OverDimension):
    r""":math:`e^{-x_i} / \sum_j e^{-x_j}` along `dim`.

    Example:
        >>> nn.Softmin(dim=0)(flambeau.zeros(2))
        tensor([0.5000, 0.5000])
    """

    _function = "softmin"


class LogSoftmax(_OverDimension):
    r""":math:`x_i - \ln \sum_j e^{x_j}` along `dim`.

    Example:
        >>> nn.LogSoftmax(dim=0)(flambeau.zeros(2))
        tensor([-0.6931, -0.6931])
    """

    _function = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W).

    Example:
        >>> nn.Softmax2d()(flambeau.zeros(1, 2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


adopt(globals(), "nn.modules.attention")
