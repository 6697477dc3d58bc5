"""Layers that are linear maps."""

from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Return the input. Arguments of the constructor are ignored.

    Example:
        >>> nn.Identity(54, unused=True)(flambeau.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    r"""An affine map of the last dimension: :math:`y = x W^\top + b`.

    `weight` is (out_features, in_features) and `bias` (out_features); both are drawn from
    :math:`U(-k, k)` with :math:`k = 1/\sqrt{\text{in\_features}}`.

    Shape: (\*, in_features) → (\*, out_features).

    Example:
        >>> nn.Linear(20, 30)(flambeau.ones(128, 20)).shape
        torch.Size([128, 30])
    """

    __constants__ = ["in_features", "out_features"]
    in_features: int
    out_features: int
    weight: Tensor

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None,
                 dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(flambeau.empty((out_features, in_features), **factory))
        if bias:
            self.bias = Parameter(flambeau.empty(out_features, **factory))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        # Kaiming's bound with a = √5 is 1/√fan_in.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` of another name, which `MultiheadAttention` uses for its output."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__(in_features, out_features, bias=bias, device=device, dtype=dtype)


class Bilinear(Module):
    r"""A bilinear form for each output: :math:`y_k = x_1^\top A_k x_2 + b_k`.

    Shape: (\*, in1_features), (\*, in2_features) → (\*, out_features).

    Example:
        >>> nn.Bilinear(2, 3, 4)(flambeau.ones(8, 2), flambeau.ones(8, 3)).shape
        torch.Size([8, 4])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device=None, dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(
            flambeau.empty((out_features, in1_features, in2_features), **factory))
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        if bias:
            self.bias = Parameter(flambeau.empty(out_features, **factory))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that takes `in_features` from its first input, and then is a `Linear`.

    Example:
        >>> layer = nn.LazyLinear(3)
        >>> _ = layer(flambeau.ones(5, 2))
        >>> layer
        Linear(in_features=2, out_features=3, bias=True)
    """

    cls_to_become = Linear
    weight: UninitializedParameter
    bias: UninitializedParameter

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        # Without bias at first: Linear would draw one, and its shape is fixed only later.
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(**factory)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(**factory)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        if self.has_uninitialized_params():
            with flambeau.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            assert input.shape[-1] == self.weight.shape[-1], (
                f"The in_features inferred from input: {input.shape[-1]} is not equal to "
                f"in_features from self.weight: {self.weight.shape[-1]}")
            self.in_features = input.shape[-1]
