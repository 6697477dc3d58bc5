"""Normalisation within a sample."""

from __future__ import annotations

import numbers

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter

from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    r"""Divide by the energy of neighbouring channels:

    .. math:: y_c = x_c \Bigl(k + \frac{\alpha}{n} \sum_{c'} x_{c'}^2\Bigr)^{-\beta}

    with :math:`c'` running over the `size` (n) channels around c. Krizhevsky et al., NeurIPS 2012.

    Example:
        >>> nn.LocalResponseNorm(2)(flambeau.ones(32, 5, 24, 24)).shape
        torch.Size([32, 5, 24, 24])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    r"""`LocalResponseNorm` of images, in an older formulation.

    The window has :math:`\lfloor (n+1)/2 \rfloor - 1` channels on each side, and the first channel
    stays in every window, as it does in PyTorch.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        input = input.contiguous()
        reach = (self.size + 1) // 2
        channels = flambeau.arange(input.size(1), device=input.device)
        neighbours = (channels - channels.unsqueeze(1)).abs() < reach
        neighbours |= channels == 0
        energy = neighbours.to(input.dtype) @ input.pow(2).flatten(2)
        energy = energy.reshape(input.shape)
        return input * (self.k + self.alpha / self.size * energy).pow(-self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _as_shape(normalized_shape):
    if isinstance(normalized_shape, numbers.Integral):
        normalized_shape = (normalized_shape,)
    return tuple(normalized_shape)


@define_in_subclasses("reset_parameters")
class _AffineNorm(Module):
    """The optional weight and bias of what normalises within a sample."""

    def _add_parameters(self, shape, weight: bool, bias: bool, factory) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            tensor = flambeau.empty(shape, **factory) if wanted else None
            self.register_parameter(name, None if tensor is None else Parameter(tensor))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_AffineNorm):
    r"""Normalise each sample over its last dimensions, those of `normalized_shape`:

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \gamma + \beta

    with the biased variance; scale and shift are per element. Ba, Kiros and Hinton, 2016.

    Example:
        >>> nn.LayerNorm([5, 10])(flambeau.ones(20, 5, 10)).abs().sum().item()
        0.0
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device=None, dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_parameters(self.normalized_shape, elementwise_affine,
                             elementwise_affine and bias, factory)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, "
                f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}")


class GroupNorm(_AffineNorm):
    """Normalise each sample over groups of its channels, as `LayerNorm` does over all.

    Shape: (N, C, \\*), `num_channels` C in `num_groups` groups. Wu and He, ECCV 2018.

    Example:
        >>> nn.GroupNorm(3, 6)(flambeau.ones(20, 6, 10)).abs().sum().item()
        0.0
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device=None, dtype=None, *, bias: bool = True) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_parameters(num_channels, affine, affine and bias, factory)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
                f"bias={self.bias is not None}")


class RMSNorm(Module):
    r"""Divide each sample by its root mean square over the last dimensions:

    .. math:: y = \frac{x}{\sqrt{\mathrm{E}[x^2] + \epsilon}} \gamma

    `eps` defaults to the smallest step of the input's dtype. Zhang and Sennrich, NeurIPS 2019.

    Example:
        >>> nn.RMSNorm(2)(flambeau.tensor([3.0, 3.0]))
        tensor([1., 1.], grad_fn=<MulBackward0>)
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps: float | None = None, elementwise_affine: bool = True,
                 device=None, dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(flambeau.empty(self.normalized_shape, **factory))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, "
                f"elementwise_affine={self.elementwise_affine}")
