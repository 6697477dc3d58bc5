"""Modules in a row that train with rounded weights.

A convolution with batch normalisation behind rounds the weight that the two have together: the
weight, times bn.weight / √(running_var + eps) of each channel.
"""
from __future__ import annotations

from typing import Any

from flambeau import Tensor, empty, nn
from flambeau._support.lazy.modules import parts
from flambeau._support.own_methods import copy_inherited, copy_method, define_in_subclasses
from flambeau._support.signatures import extended, signed
from flambeau.ao.nn import intrinsic, qat
from flambeau.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights

__all__ = ["ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d",
           "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearReLU", "freeze_bn_stats",
           "update_bn_stats"]


@define_in_subclasses()
class _WithBatchNorm(qat._FakeQuantizedWeight):
    """A product with a weight and batch normalisation behind, rounded as one."""

    bn: Any
    _version = 2
    _batch_norm: Any                            # the class of `bn`
    _weight_of_both: Any = staticmethod(fuse_conv_bn_weights)

    def _normalize(self, features: int, eps: float, momentum: float, freeze_bn: bool) -> None:
        fake = self._modules.pop("weight_fake_quant")       # `bn` is listed first
        self.bn = self._batch_norm(features, eps, momentum, True, True)
        self.weight_fake_quant: Any = fake
        self.freeze_bn = freeze_bn and self.training
        self.reset_bn_parameters()
        self.bn.training = self.training and not freeze_bn

    def _product(self, input: Tensor, weight: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        bn = self.bn
        factor = bn.weight / (bn.running_var + bn.eps).sqrt()
        shape = [-1] + [1] * (self.weight.dim() - 1)
        rounded = self.weight_fake_quant(self.weight * factor.reshape(shape))
        result = self._product(input, rounded)
        along = [1, -1] + [1] * (result.dim() - 2)
        result = result / factor.reshape(along)
        if self.bias is not None:
            result = result + self.bias.reshape(along)
        return bn(result)

    def update_bn_stats(self) -> Any:
        """Let batch normalisation learn from now on."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> Any:
        """Keep the statistics of batch normalisation as they are."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def reset_bn_parameters(self) -> None:
        """Batch normalisation begins anew, its scale drawn from 0 to 1."""
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)
        nn.init.zeros_(self.bn.bias)

    def reset_running_stats(self) -> None:
        """Forget the statistics of batch normalisation."""
        self.bn.reset_running_stats()

    def train(self, mode: bool = True) -> Any:
        """Set the mode; a frozen batch normalisation stays as it is."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A module with the parameters and the qconfig of float ones in a row."""
        result = super().from_float(mod, use_precomputed_fake_quant)
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(result.bn, name, getattr(mod[1], name))
        return result

    def _joined(self) -> tuple[Any, Any]:
        bn: Any = self.bn
        return self._weight_of_both(self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps,
                                    bn.weight, bn.bias)

    bias: Any


@define_in_subclasses("__init__")
@copy_inherited("forward", "freeze_bn_stats", "from_float", "reset_running_stats", "train",
                "update_bn_stats")
class _ConvBnNd(_WithBatchNorm):
    """`freeze_bn` begins with statistics that do not change."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: Any = None,
                 padding_mode: str = "zeros", eps: float = 1e-5, momentum: float = 0.1,
                 freeze_bn: bool = False, qconfig: Any = None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                         False, padding_mode, qconfig=qconfig)
        if bias:                                # drawn behind the scale of batch normalisation
            self.bias = nn.Parameter(empty(out_channels))
        self._normalize(out_channels, eps, momentum, freeze_bn)

    def reset_bn_parameters(self) -> None:
        """Batch normalisation begins anew, its scale drawn from 0 to 1, and so does the bias."""
        super().reset_bn_parameters()
        if self.bias is not None:
            bound = 1 / self.weight[0].numel() ** 0.5
            nn.init.uniform_(self.bias, -bound, bound)

    def _product(self, input: Tensor, weight: Tensor) -> Tensor:
        own: Any = self
        return own._conv_forward(input, weight, None)

    @classmethod
    def _like(cls, mod: Any, qconfig: Any, row: Any) -> Any:
        made: Any = cls
        return made(mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding,
                    mod.dilation, mod.groups, mod.bias is not None, mod.padding_mode,
                    row[1].eps, row[1].momentum, False, qconfig)

    def to_float(self) -> Any:
        """A float convolution that does what this does when it does not learn."""
        own: Any = self
        conv = own._FLOAT_CONV_MODULE(own.in_channels, own.out_channels, own.kernel_size,
                                      own.stride, own.padding, own.dilation, own.groups, True,
                                      own.padding_mode)
        conv.weight, conv.bias = self._joined()
        return conv.train(self.training)


@define_in_subclasses("forward")
class _WithReLU(nn.Module):
    """The positive part of what the base gives."""

    _FLOAT_RELU_MODULE: Any

    def forward(self, input: Tensor) -> Tensor:
        base: Any = super()
        return nn.functional.relu(base.forward(input))

    def to_float(self) -> Any:
        """Float modules in a row."""
        base: Any = super()
        return self._FLOAT_RELU_MODULE(base.to_float(), nn.ReLU())


def _kinds(n: int) -> tuple[Any, Any, Any]:
    """ConvBn, ConvBnReLU and ConvReLU in `n` dimensions."""
    conv = getattr(nn, f"Conv{n}d")

    def made(name: str, bases: tuple[Any, ...], doc: str, **more: Any) -> Any:
        float_module = getattr(intrinsic, name)
        attributes = {"__doc__": doc, "__module__": __name__, "_FLOAT_CONV_MODULE": conv,
                      "_FLOAT_MODULE": float_module}
        return type(name, bases, attributes | more)

    relu = {"_FLOAT_RELU_MODULE": getattr(intrinsic, f"ConvReLU{n}d")}
    with_bn = made(f"ConvBn{n}d", (_ConvBnNd, conv), "A convolution and batch normalisation, "
                   "rounded as one.", _batch_norm=getattr(nn, f"BatchNorm{n}d"))
    and_relu = made(f"ConvReLU{n}d", (_WithReLU, getattr(qat, f"Conv{n}d")), "A convolution with a "
                    "rounded weight, and the positive part taken.", **relu)
    copy_method(and_relu, "__init__", and_relu.__init__)
    signed(extended(and_relu.__init__, without=("device", "dtype")))(vars(and_relu)["__init__"])
    return (with_bn, made(f"ConvBnReLU{n}d", (_WithReLU, with_bn), f"`ConvBn{n}d` with the "
                          "positive part taken.", **relu), and_relu)


ConvBn1d, ConvBnReLU1d, ConvReLU1d = _kinds(1)
ConvBn2d, ConvBnReLU2d, ConvReLU2d = _kinds(2)
ConvBn3d, ConvBnReLU3d, ConvReLU3d = _kinds(3)


@copy_inherited("from_float", "to_float")
class LinearReLU(_WithReLU, qat.Linear):
    """`qat.Linear` with the positive part taken."""

    _FLOAT_MODULE = _FLOAT_RELU_MODULE = intrinsic.LinearReLU

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 qconfig: Any = None):
        super().__init__(in_features, out_features, bias, qconfig)


class LinearBn1d(_WithBatchNorm, nn.Linear):
    """A linear map and batch normalisation, rounded as one."""

    _version = 1
    _FLOAT_MODULE = intrinsic.LinearBn1d
    _batch_norm = nn.BatchNorm1d
    _weight_of_both = staticmethod(fuse_linear_bn_weights)

    def __init__(self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-5,
                 momentum: float = 0.1, freeze_bn: bool = False, qconfig: Any = None):
        super().__init__(in_features, out_features, bias, qconfig=qconfig)
        self._normalize(out_features, eps, momentum, freeze_bn)

    def _product(self, input: Tensor, weight: Tensor) -> Tensor:
        return nn.functional.linear(input, weight)

    @classmethod
    def _like(cls, mod: Any, qconfig: Any, row: Any) -> Any:
        return cls(mod.in_features, mod.out_features, mod.bias is not None, row[1].eps,
                   row[1].momentum, False, qconfig)

    def to_float(self) -> Any:
        """A float linear map that does what this does when it does not learn."""
        result = nn.Linear(self.in_features, self.out_features)
        result.weight, result.bias = self._joined()
        return result.train(self.training)


def update_bn_stats(mod: nn.Module) -> None:
    """For `module.apply`: batch normalisation of convolutions learns from now on."""
    if isinstance(mod, _ConvBnNd):
        mod.update_bn_stats()


def freeze_bn_stats(mod: nn.Module) -> None:
    """For `module.apply`: batch normalisation of convolutions keeps its statistics."""
    if isinstance(mod, _ConvBnNd):
        mod.freeze_bn_stats()

parts(__name__, {
    "modules": "*",
    "modules.conv_fused":
        "ConvBn1d ConvBnReLU1d ConvReLU1d ConvBn2d ConvBnReLU2d ConvReLU2d ConvBn3d "
        "ConvBnReLU3d ConvReLU3d update_bn_stats freeze_bn_stats",
    "modules.linear_fused": "LinearBn1d",
    "modules.linear_relu": "LinearReLU"})
