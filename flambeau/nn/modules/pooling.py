r"""Pooling: one number for every window of the last one, two or three dimensions.

Windows have `kernel_size` elements, `dilation` apart, and start every `stride` (default: the
kernel's size) from `padding` before the first element. A dimension of length L becomes
:math:`\lfloor (L + 2p - d(k-1) - 1)/s \rfloor + 1`; `ceil_mode` rounds up.
"""

from __future__ import annotations

from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn import functional as F
from flambeau.nn.common_types import _size_any_t

from .module import Module
from .utils import _ntuple, _single

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
           "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
           "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d",
           "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


# ------------------------------------------------------------------ maximum

@define_in_subclasses("forward")
class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None,
                 padding: _size_any_t = 0, dilation: _size_any_t = 1, return_indices: bool = False,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if (stride is not None) else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor):
        return getattr(F, self._pool)(input, self.kernel_size, self.stride, self.padding,
                                      self.dilation, ceil_mode=self.ceil_mode,
                                      return_indices=self.return_indices)

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
                f", dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class MaxPool1d(_MaxPoolNd):
    """The maximum of every window. Padding counts as minus infinity.

    With `return_indices` also the positions of the maxima, which `MaxUnpool1d` takes.

    Example:
        >>> nn.MaxPool1d(2)(flambeau.tensor([[1.0, 3.0, 2.0, 0.0]]))
        tensor([[3., 2.]])
    """

    _pool = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """The maximum of every two-dimensional window; see `MaxPool1d`.

    Example:
        >>> nn.MaxPool2d(3, stride=2)(flambeau.ones(20, 16, 50, 32)).shape
        torch.Size([20, 16, 24, 15])
    """

    _pool = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """The maximum of every three-dimensional window; see `MaxPool1d`."""

    _pool = "max_pool3d"


@define_in_subclasses("__init__", "forward")
class _MaxUnpoolNd(Module):
    _n_dims: int

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None,
                 padding: _size_any_t = 0) -> None:
        super().__init__()
        as_tuple = _ntuple(self._n_dims)
        self.kernel_size = as_tuple(kernel_size)
        self.stride = as_tuple(stride if (stride is not None) else kernel_size)
        self.padding = as_tuple(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        return getattr(F, self._unpool)(input, indices, self.kernel_size, self.stride, self.padding,
                                        output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Put each maximum back where `MaxPool1d` found it, and zeros elsewhere.

    Example:
        >>> pool, unpool = nn.MaxPool1d(2, return_indices=True), nn.MaxUnpool1d(2)
        >>> unpool(*pool(flambeau.tensor([[1.0, 3.0, 2.0, 0.0]])))
        tensor([[0., 3., 2., 0.]])
    """

    _n_dims = 1
    _unpool = "max_unpool1d"


class MaxUnpool2d(_MaxUnpoolNd):
    """Put each maximum back where `MaxPool2d` found it, and zeros elsewhere."""

    _n_dims = 2
    _unpool = "max_unpool2d"


class MaxUnpool3d(_MaxUnpoolNd):
    """Put each maximum back where `MaxPool3d` found it, and zeros elsewhere."""

    _n_dims = 3
    _unpool = "max_unpool3d"


# ------------------------------------------------------------------ average

class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of every window; `count_include_pad` says whether padding counts as zeros.

    Example:
        >>> nn.AvgPool1d(3, stride=2)(flambeau.arange(7.0).view(1, 7))
        tensor([[1., 3., 5.]])
    """

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None,
                 padding: _size_any_t = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)


@define_in_subclasses("__init__", "forward")
class _AvgPoolWithDivisor(_AvgPoolNd):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
                     "divisor_override"]

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None,
                 padding: _size_any_t = 0, ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if (stride is not None) else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._pool)(input, self.kernel_size, self.stride, self.padding,
                                      self.ceil_mode, self.count_include_pad, self.divisor_override)


class AvgPool2d(_AvgPoolWithDivisor):
    """The mean of every two-dimensional window, or its sum over `divisor_override`.

    Example:
        >>> nn.AvgPool2d((3, 2), stride=(2, 1))(flambeau.ones(20, 16, 50, 32)).shape
        torch.Size([20, 16, 24, 31])
    """

    _pool = "avg_pool2d"


class AvgPool3d(_AvgPoolWithDivisor):
    """The mean of every three-dimensional window; see `AvgPool2d`."""

    _pool = "avg_pool3d"

    def __setstate__(self, d):
        super().__setstate__(d)
        self.__dict__.setdefault("padding", 0)
        self.__dict__.setdefault("ceil_mode", False)
        self.__dict__.setdefault("count_include_pad", True)


# ------------------------------------------------------------------ other kinds

@define_in_subclasses("__init__", "forward")
class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _n_dims: int

    def __init__(self, kernel_size, output_size=None, output_ratio=None,
                 return_indices: bool = False, _random_samples=None) -> None:
        super().__init__()
        as_tuple = _ntuple(self._n_dims)
        name = f"FractionalMaxPool{self._n_dims}d"
        sizes = (kernel_size,) if isinstance(kernel_size, int) else kernel_size
        if (self._n_dims == 3 and isinstance(sizes, (tuple, list))
                and not all(k > 0 for k in sizes)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.kernel_size = as_tuple(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = as_tuple(output_size) if output_size is not None else None
        ratio = as_tuple(output_ratio) if output_ratio is not None else None
        self.output_ratio = ratio
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if ratio is not None and not all(0 < ratio[d] < 1 for d in range(self._n_dims)):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor):
        return getattr(F, self._pool)(input, self.kernel_size, self.output_size, self.output_ratio,
                                      self.return_indices, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of windows at random, nearly regular places, as many as `output_size` says or
    `output_ratio` times the input. Graham, Fractional max-pooling, 2014.

    Example:
        >>> nn.FractionalMaxPool2d(3, output_size=(13, 12))(flambeau.ones(2, 4, 50, 32)).shape
        torch.Size([2, 4, 13, 12])
    """

    _n_dims = 2
    _pool = "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of three-dimensional windows at random places; see `FractionalMaxPool2d`."""

    _n_dims = 3
    _pool = "fractional_max_pool3d"


@define_in_subclasses("forward")
class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._pool)(input, float(self.norm_type), self.kernel_size, self.stride,
                                      self.ceil_mode)

    def extra_repr(self) -> str:
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}, ceil_mode={self.ceil_mode}")


class LPPool1d(_LPPoolNd):
    r"""The p-norm of every window, :math:`(\sum x^p)^{1/p}`, p being `norm_type`.

    Example:
        >>> nn.LPPool1d(2, 2)(flambeau.tensor([[3.0, 4.0, 6.0, 8.0]]))
        tensor([[ 5., 10.]])
    """

    _pool = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """The p-norm of every two-dimensional window; see `LPPool1d`."""

    _pool = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """The p-norm of every three-dimensional window; see `LPPool1d`."""

    _pool = "lp_pool3d"


# ------------------------------------------------------------------ adaptive

@define_in_subclasses("forward")
class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        return getattr(F, self._pool)(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of `output_size` windows that cover the input evenly.

    Example:
        >>> nn.AdaptiveMaxPool1d(2)(flambeau.arange(5.0).view(1, 5))
        tensor([[2., 4.]])
    """

    _pool = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of a grid of `output_size` windows; None keeps a dimension's size."""

    _pool = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of a grid of `output_size` windows; None keeps a dimension's size."""

    _pool = "adaptive_max_pool3d"


@define_in_subclasses("forward")
class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._pool)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of `output_size` windows that cover the input evenly.

    Example:
        >>> nn.AdaptiveAvgPool1d(2)(flambeau.arange(4.0).view(1, 4))
        tensor([[0.5000, 2.5000]])
    """

    _pool = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of a grid of `output_size` windows; None keeps a dimension's size.

    Example:
        >>> nn.AdaptiveAvgPool2d((None, 7))(flambeau.ones(1, 64, 10, 9)).shape
        torch.Size([1, 64, 10, 7])
    """

    _pool = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of a grid of `output_size` windows; None keeps a dimension's size."""

    _pool = "adaptive_avg_pool3d"
