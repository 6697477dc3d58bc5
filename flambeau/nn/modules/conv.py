"""Convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

import math
import warnings
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.common_types import _size_any_t
from flambeau.nn.parameter import Parameter, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple, _unusual

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
           "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
           "LazyConvTranspose3d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


@define_in_subclasses("forward")
class _ConvNd(Module):
    """What all convolutions share: their sizes, their weight, its initial values, their repr.

    The weight is (out, in/groups, \\*kernel), of a transposed convolution (in, out/groups,
    \\*kernel); weight and bias are drawn from U(-k, k) with k² = groups / (in · Πkernel).
    """

    __constants__ = ["stride", "padding", "dilation", "groups", "padding_mode", "output_padding",
                     "in_channels", "out_channels", "kernel_size"]
    _n_dims: int
    _conv = ""      # the function, which is looked up at each call: programs replace it

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride, padding, dilation,
                 transposed: bool, output_padding, groups: int, bias: bool, padding_mode: str,
                 device=None, dtype=None) -> None:
        super().__init__()
        self._check(in_channels, out_channels, groups, stride, padding, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_per_side()
        factory = {"device": device, "dtype": dtype}
        self.weight = Parameter(flambeau.empty(self._weight_shape(), **factory))
        if bias:
            self.bias = Parameter(flambeau.empty(out_channels, **factory))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    @staticmethod
    def _check(in_channels, out_channels, groups, stride, padding, padding_mode):
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            valid = {"same", "valid"}
            if padding not in valid:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {valid}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {set(_PADDING_MODES)}, "
                             f"but got padding_mode='{padding_mode}'")

    def _weight_shape(self):
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def _padding_per_side(self):
        """Padding as `F.pad` takes it, last dimension first, for the modes other than zeros."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        sides = []
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = d * (k - 1) if self.padding == "same" else 0
            sides += [total // 2, total - total // 2]
        return sides

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._n_dims
        return getattr(F, self._conv)(input, weight, bias, self.stride, padding, self.dilation,
                                      self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        n = len(self.kernel_size)
        sizes = _unusual(self, padding=(0,) * len(self.padding), dilation=(1,) * n,
                         output_padding=(0,) * n, groups=1)
        bias = ", bias=False" if self.bias is None else ""
        return (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}{sizes}{bias}" + _unusual(self, padding_mode="zeros"))

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "padding_mode"):
            self.padding_mode = "zeros"


@define_in_subclasses("__init__")
class _Conv(_ConvNd):
    """The constructor of the convolutions that are not transposed."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _size_any_t,
                 stride: _size_any_t = 1, padding: _size_any_t | str = 0, dilation: _size_any_t = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None,
                 dtype=None) -> None:
        as_tuple = _ntuple(self._n_dims)
        super().__init__(in_channels, out_channels, as_tuple(kernel_size), as_tuple(stride),
                         padding if isinstance(padding, str) else as_tuple(padding),
                         as_tuple(dilation), False, as_tuple(0), groups, bias, padding_mode,
                         device=device, dtype=dtype)


class Conv1d(_Conv):
    r"""Cross-correlation over one dimension:

    .. math:: y_o[t] = b_o + \sum_{i,k} w_{o,i}[k] \; x_i[s t + d k - p]

    `padding` is a number per side, ``'valid'`` (none) or ``'same'`` (as long as the input; needs
    stride 1); `padding_mode` says what stands there: zeros, reflect, replicate or circular.
    `groups` splits the channels into parts that do not mix.

    Shape: (N, C_in, L) or (C_in, L) → (N, C_out, L'),
    :math:`L' = \lfloor (L + 2p - d(k-1) - 1)/s \rfloor + 1`.

    Example:
        >>> nn.Conv1d(16, 33, 3, stride=2)(flambeau.ones(20, 16, 50)).shape
        torch.Size([20, 33, 24])
    """

    _n_dims = 1
    _conv = "conv1d"


class Conv2d(_Conv):
    r"""Cross-correlation over two dimensions; see `Conv1d`.

    Shape: (N, C_in, H, W) or (C_in, H, W) → (N, C_out, H', W').

    Example:
        >>> nn.Conv2d(16, 33, (3, 5), padding="same")(flambeau.ones(2, 16, 9, 8)).shape
        torch.Size([2, 33, 9, 8])
    """

    _n_dims = 2
    _conv = "conv2d"


class Conv3d(_Conv):
    r"""Cross-correlation over three dimensions; see `Conv1d`.

    Shape: (N, C_in, D, H, W) or (C_in, D, H, W) → (N, C_out, D', H', W').

    Example:
        >>> nn.Conv3d(4, 5, 3, stride=2)(flambeau.ones(2, 4, 7, 7, 7)).shape
        torch.Size([2, 5, 3, 3, 3])
    """

    _n_dims = 3
    _conv = "conv3d"


@define_in_subclasses("__init__", "forward")
class _ConvTransposeNd(_ConvNd):
    """The constructor and the call of the transposed convolutions."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _size_any_t,
                 stride: _size_any_t = 1, padding: _size_any_t = 0, output_padding: _size_any_t = 0,
                 groups: int = 1, bias: bool = True, dilation: _size_any_t = 1,
                 padding_mode: str = "zeros", device=None, dtype=None) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        as_tuple = _ntuple(self._n_dims)
        super().__init__(in_channels, out_channels, as_tuple(kernel_size), as_tuple(stride),
                         as_tuple(padding), as_tuple(dilation), True, as_tuple(output_padding),
                         groups, bias, padding_mode, device=device, dtype=dtype)

    def _output_padding(self, input: Tensor, output_size):
        """What to add to the output so that it gets `output_size`; the module's own if None."""
        if output_size is None:
            return self.output_padding
        n = self._n_dims
        n_extra = 2 if input.dim() == n + 2 else 1  # batch and channel
        sizes = output_size
        if len(sizes) == n_extra + n:
            sizes = sizes[n_extra:]
        if len(sizes) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} "
                f"or {n_extra + n} elements (got {len(sizes)})")
        smallest = [(input.size(n_extra + i) - 1) * self.stride[i] - 2 * self.padding[i]
                    + self.dilation[i] * (self.kernel_size[i] - 1) + 1 for i in range(n)]
        largest = [low + step - 1 for low, step in zip(smallest, self.stride)]
        if any(size < low or size > high for low, size, high in zip(smallest, sizes, largest)):
            raise ValueError(f"requested an output size of {sizes}, but valid sizes range "
                             f"from {smallest} to {largest} (for an input of {input.size()[2:]})")
        return [size - low for size, low in zip(sizes, smallest)]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        return getattr(F, self._conv)(input, self.weight, self.bias, self.stride, self.padding,
                                      self._output_padding(input, output_size), self.groups,
                                      self.dilation)


class _ConvTransposeMixin(_ConvTransposeNd):
    """The old name of `_ConvTransposeNd`, which libraries still ask for."""

    def __init__(self, *args, **kwargs) -> None:
        warnings.warn("`_ConvTransposeMixin` is a deprecated internal class. Please consider using "
                      "public APIs.", FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)


class ConvTranspose1d(_ConvTransposeNd):
    r"""The transpose of a `Conv1d` as a linear map, hence its gradient: it undoes the shape.

    With stride several outputs are possible; `output_padding`, or `output_size` in the call,
    chooses one.

    Shape: (N, C_in, L) → (N, C_out, L'), :math:`L' = (L-1)s - 2p + d(k-1) + o + 1`.

    Example:
        >>> nn.ConvTranspose1d(4, 3, 3, stride=2)(flambeau.ones(2, 4, 5)).shape
        torch.Size([2, 3, 11])
    """

    _n_dims = 1
    _conv = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a `Conv2d`; see `ConvTranspose1d`.

    Example:
        >>> up = nn.ConvTranspose2d(16, 16, 3, stride=2, padding=1)
        >>> up(flambeau.ones(1, 16, 6, 6), output_size=(12, 12)).shape
        torch.Size([1, 16, 12, 12])
    """

    _n_dims = 2
    _conv = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a `Conv3d`; see `ConvTranspose1d`.

    Example:
        >>> nn.ConvTranspose3d(4, 3, 2, stride=2)(flambeau.ones(1, 4, 2, 3, 4)).shape
        torch.Size([1, 3, 4, 6, 8])
    """

    _n_dims = 3
    _conv = "conv_transpose3d"


# ------------------------------------------------------------------ lazy

class _LazyConvXdMixin(LazyModuleMixin):
    """Takes `in_channels` from the first input. The options are those of the eager layer."""

    _n_dims: int
    in_channels: int
    groups: int
    weight: Any
    bias: Any
    _weight_shape: Any

    def _make(self, out_channels: int, kernel_size, bias: bool, device, dtype, **options) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__(0, 0, kernel_size, bias=False, **options, **factory)
        self.weight = UninitializedParameter(**factory)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(**factory)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()                          # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args, **kwargs) -> None:
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        n = self._get_num_spatial_dims()
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to "
                               f"{type(self).__name__}, but got input of size: {input.shape}")
        return input.shape[1] if input.dim() == n + 2 else input.shape[0]

    def _get_num_spatial_dims(self) -> int:
        return self._n_dims


@define_in_subclasses("__init__")
class _LazyConv(_LazyConvXdMixin):
    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, dilation=1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None,
                 dtype=None) -> None:
        self._make(out_channels, kernel_size, bias, device, dtype, stride=stride, padding=padding,
                   dilation=dilation, groups=groups, padding_mode=padding_mode)


@define_in_subclasses("__init__")
class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(self, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0,
                 groups: int = 1, bias: bool = True, dilation=1, padding_mode: str = "zeros",
                 device=None, dtype=None) -> None:
        self._make(out_channels, kernel_size, bias, device, dtype, stride=stride, padding=padding,
                   output_padding=output_padding, groups=groups, dilation=dilation,
                   padding_mode=padding_mode)


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` that takes `in_channels` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` that takes `in_channels` from its first input.

    Example:
        >>> layer = nn.LazyConv2d(4, 3)
        >>> _ = layer(flambeau.ones(1, 2, 5, 5))
        >>> layer
        Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1))
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` that takes `in_channels` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d
