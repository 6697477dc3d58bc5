"""Modules that compute in the opaque layout `torch._mkldnn`.

`to_mkldnn(module)` puts layers of its own in the places of linear ones, convolutions,
normalisations of batches and `PReLU`. They keep their weights in the opaque layout, take tensors of
either layout, and give what they were given.

>>> import flambeau
>>> from flambeau.utils import mkldnn
>>> net = mkldnn.to_mkldnn(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
>>> net
Sequential(
  (0): MkldnnLinear()
  (1): ReLU()
)
>>> net(flambeau.ones(1, 3).to_mkldnn()).is_mkldnn
True
"""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn import functional as F
from flambeau.nn import modules as layers
from flambeau.nn.modules import Module


@define_in_subclasses("__init__")
class _MkldnnLayer(Module):
    """A layer with the weights of `dense_module`, opaque, as buffers of the `kept` names."""

    kept: tuple[str, ...] = ("weight", "bias")

    def __init__(self, dense_module: Any, dtype: Any):
        super().__init__()
        for name in self.kept:
            value = getattr(dense_module, name)
            if value is None:
                value = flambeau.zeros(dense_module.weight.size(0))
            self.register_buffer(name, value.to_mkldnn(dtype))

    def forward(self, input: Tensor) -> Tensor:
        result = self.compute(input if input.is_mkldnn else input.to_mkldnn())
        return result if input.is_mkldnn else result.to_dense()

    def compute(self, input: Tensor) -> Tensor:
        """The layer's result for an opaque tensor."""
        raise NotImplementedError


class MkldnnLinear(_MkldnnLayer):
    """`Linear` in the opaque layout."""

    def compute(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)


@define_in_subclasses("__init__")
class _MkldnnConvNd(_MkldnnLayer):
    """Convolution in the opaque layout."""

    kept = ("bias", "weight")
    convolve: Any = None

    def __init__(self, dense_module: Any, dtype: Any):
        super().__init__(dense_module, dtype)
        self.stride, self.padding = dense_module.stride, dense_module.padding
        self.dilation, self.groups = dense_module.dilation, dense_module.groups

    def compute(self, input: Tensor) -> Tensor:
        return type(self).convolve(input, self.weight, self.bias, self.stride, self.padding,
                                   self.dilation, self.groups)


class MkldnnConv1d(_MkldnnConvNd):
    """`Conv1d` in the opaque layout."""

    convolve = F.conv1d


class MkldnnConv2d(_MkldnnConvNd):
    """`Conv2d` in the opaque layout."""

    convolve = F.conv2d


class MkldnnConv3d(_MkldnnConvNd):
    """`Conv3d` in the opaque layout."""

    convolve = F.conv3d


class MkldnnBatchNorm(_MkldnnLayer):
    """`BatchNorm2d` or `BatchNorm3d`, of statistics that are known, in the opaque layout."""

    kept = ("weight", "bias", "running_mean", "running_var")

    def __init__(self, dense_module: Any):
        if dense_module.training:
            raise AssertionError("Only support eval mode batchnorm for mkldnn path now")
        if not (dense_module.track_running_stats and dense_module.affine):
            raise AssertionError("Only support track_running_stats=True and affine=True for mkldnn "
                                 "path now")
        super().__init__(dense_module, None)
        self.eps = dense_module.eps

    def compute(self, input: Tensor) -> Tensor:
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                            False, 0.0, self.eps)


class MkldnnPrelu(_MkldnnLayer):
    """`PReLU` in the opaque layout."""

    kept = ("weight",)

    def compute(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


_LAYERS: dict[Any, Any] = {
    layers.Linear: MkldnnLinear, layers.Conv1d: MkldnnConv1d, layers.Conv2d: MkldnnConv2d,
    layers.Conv3d: MkldnnConv3d, layers.BatchNorm2d: MkldnnBatchNorm,
    layers.BatchNorm3d: MkldnnBatchNorm, layers.PReLU: MkldnnPrelu}


def to_mkldnn(module: Module, dtype: Any = flambeau.float32) -> Module:
    """`module` with its layers replaced by those, where there are such, that compute in the opaque
    layout `torch._mkldnn`, with weights of `dtype`; of a single layer the other one."""
    if dtype not in (flambeau.float32, flambeau.bfloat16, flambeau.float16):
        raise AssertionError("MKLDNN only support float, bfloat16, and half path now")
    own = _LAYERS.get(type(module))
    if own is MkldnnBatchNorm:
        return own(module)
    if own is not None:
        return own(module, dtype)
    for name, child in module.named_children():
        setattr(module, name, to_mkldnn(child, dtype))
    return module


__all__ = ["MkldnnBatchNorm", "MkldnnConv1d", "MkldnnConv2d", "MkldnnConv3d", "MkldnnLinear",
           "MkldnnPrelu", "to_mkldnn"]
