"""Activations made of straight pieces, thresholds, and exponentials below 0."""
from __future__ import annotations

import warnings

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter

__all__ = ["CELU", "ELU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
           "PReLU", "RReLU", "ReLU", "ReLU6", "Softshrink", "Threshold"]


@define_in_subclasses("__init__", "forward", "extra_repr")
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


@define_in_subclasses("__init__", "forward", "extra_repr")
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
        self.num_parameters = num_parameters
        super().__init__()
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


@define_in_subclasses("__init__", "forward", "extra_repr")
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
