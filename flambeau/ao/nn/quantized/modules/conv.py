"""Convolutions with quantised weights."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.own_methods import define_in_subclasses
from flambeau.ao.nn import intrinsic
from flambeau.ao.nn.quantized.functional import _SHAPES
from flambeau.ao.nn.quantized.modules.utils import WeightedQuantizedModule, _empty_weight
from flambeau.nn.modules import conv as float_conv
from flambeau.nn.modules.utils import _ntuple, _unusual
from flambeau.ops.quantized import library as ops


@define_in_subclasses("__init__", "forward", further=True)
@define_in_subclasses("weight", "bias", "set_weight_bias")
class _ConvNd(WeightedQuantizedModule):
    """What all of them share; the sizes are those of the float module `_FLOAT_MODULE`."""

    _n_dims: int
    _transposed = False
    _op = "conv"
    _weight_shape: Any = float_conv._ConvNd._weight_shape
    _padding_per_side: Any = float_conv._ConvNd._padding_per_side

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None):
        self._init(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups,
                   bias, padding_mode)

    def _init(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any,
              padding: Any, dilation: Any, output_padding: Any, groups: int, bias: bool,
              padding_mode: str) -> None:
        super().__init__()
        as_tuple = _ntuple(self._n_dims)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = as_tuple(kernel_size), as_tuple(stride)
        self.padding, self.dilation = as_tuple(padding), as_tuple(dilation)
        self.transposed, self.output_padding = self._transposed, as_tuple(output_padding)
        if padding_mode == "circular" and self.transposed:
            raise NotImplementedError("Circular padding for transposed convolutions")
        self.groups, self.padding_mode = groups, padding_mode
        for channels, name in ((in_channels, "in_channels"), (out_channels, "out_channels")):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups")
        self._reversed_padding_repeated_twice = self._padding_per_side()
        self.scale, self.zero_point = 1.0, 0
        self.set_weight_bias(_empty_weight(*self._weight_shape()),
                             flambeau.zeros(out_channels) if bias else None)

    @classmethod
    def _like(cls, mod: Any) -> Any:
        result = cls.__new__(cls)
        result._init(mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding,
                     mod.dilation, mod.output_padding, mod.groups, mod.bias is not None,
                     mod.padding_mode)
        return result

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Take a quantised weight and a bias."""
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._n_dims
        last = (self.dilation, self.groups)
        prefix = "conv_transpose" if self.transposed else "conv"
        self._packed_params = getattr(ops, f"{prefix}{self._n_dims}d_prepack")(
            w, b, self.stride, padding,
            *((self.output_padding, *last) if self.transposed else last))

    @classmethod
    def from_reference(cls, ref_qconv: Any, output_scale: float, output_zero_point: int) -> Any:
        """The quantised form of a module from `quantized.reference`, or of one in a row."""
        return cls._from_reference(ref_qconv, output_scale, output_zero_point)

    @classmethod
    def get_qconv(cls, mod: Any, activation_post_process: Any,
                  weight_post_process: Any = None) -> Any:
        """The quantised form of a float module, with what watched its results and its weight."""
        watch = weight_post_process
        if watch is None:
            watch = mod.qconfig.weight()
        watch(mod.weight)
        return cls._from_observed(mod, activation_post_process, watch)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params.unpack()

    def weight(self) -> Tensor:
        """The quantised weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias."""
        return self._weight_bias()[1]

    def _padded(self, input: Tensor) -> Tensor:
        if input.dim() != self._n_dims + 2:
            raise ValueError(f"Input shape must be `{_SHAPES[self._n_dims]}`!")
        if self.padding_mode == "zeros":
            return input
        return nn.functional.pad(input, self._reversed_padding_repeated_twice,
                                 mode=self.padding_mode)

    def forward(self, input: Tensor) -> Tensor:
        return getattr(ops, self._op_name())(self._padded(input), self._packed_params, self.scale,
                                             self.zero_point)

    @classmethod
    def _op_name(cls) -> str:
        base, _, rest = cls._op.partition("+")
        return f"{base}{cls._n_dims}d{rest}"

    def _save_weight(self, destination: Any, prefix: str) -> None:
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        n = self._n_dims
        sizes = _unusual(self, padding=(0,) * n, dilation=(1,) * n, output_padding=(0,) * n,
                         groups=1)
        return (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}{sizes}"
                f"{', bias=False' if self.bias() is None else ''}")


@define_in_subclasses("__init__", "from_reference")
class _ConvTransposeNd(_ConvNd):
    _transposed = True
    _op = "conv_transpose"

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
                 dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._init(in_channels, out_channels, kernel_size, stride, padding, dilation,
                   output_padding, groups, bias, padding_mode)

    @classmethod
    def from_reference(cls, ref_qconvt: Any, output_scale: float, output_zero_point: int) -> Any:
        """The quantised form of a module from `quantized.reference`."""
        return cls._from_reference(ref_qconvt, output_scale, output_zero_point)


def _kind(name: str, n: int, float_module: Any, base: Any = _ConvNd, op: str | None = None,
          doc: str | None = None) -> Any:
    """A class of this module's, for `n` dimensions."""
    text = doc or f"`{float_module.__name__}` of a quantised tensor with a quantised weight."
    attributes = {"_n_dims": n, "_FLOAT_MODULE": float_module, "__doc__": text,
                  "__module__": __name__}
    return type(name, (base,), attributes | ({"_op": op} if op else {}))


Conv1d: Any
Conv2d: Any
Conv3d: Any
Conv1d, Conv2d, Conv3d = (
    _kind(f"Conv{n}d", n, getattr(nn, f"Conv{n}d")) for n in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (
    _kind(f"ConvTranspose{n}d", n, getattr(nn, f"ConvTranspose{n}d"), _ConvTransposeNd)
    for n in (1, 2, 3))
ConvReLU1d, ConvReLU2d, ConvReLU3d = (
    _kind(f"ConvReLU{n}d", n, getattr(intrinsic, f"ConvReLU{n}d"), base, "conv+_relu")
    for n, base in ((1, Conv1d), (2, Conv2d), (3, Conv3d)))


class ConvAdd2d(Conv2d):
    """`Conv2d` to whose result another quantised tensor is added."""

    _FLOAT_MODULE: Any = intrinsic.ConvAdd2d
    _op = "conv+_add"

    def forward(self, input: Tensor, extra_input: Tensor) -> Tensor:
        return getattr(ops, self._op_name())(self._padded(input), extra_input, self._packed_params,
                                             self.scale, self.zero_point)


class ConvAddReLU2d(ConvAdd2d):
    """`ConvAdd2d` with the positive part taken."""

    _FLOAT_MODULE = intrinsic.ConvAddReLU2d
    _op = "conv+_add_relu"


__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
