"""Modules that train with rounded weights."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor, nn
from flambeau._support.lazy.modules import lazy_modules, parts
from flambeau._support.own_methods import define_in_subclasses

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]
__getattr__ = lazy_modules(__name__, "dynamic")


@define_in_subclasses("from_float", further=True)
class _FakeQuantizedWeight(nn.Module):
    """A float module whose weight is rounded in `forward`, as `qconfig.weight` says.

    It comes before the float module among the bases and takes its arguments, and `qconfig`.
    """

    _FLOAT_MODULE: Any
    weight: Any
    weight_fake_quant: nn.Module

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self._watch(qconfig)

    def _watch(self, qconfig: Any) -> None:
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    @property
    def _rounded_weight(self) -> Tensor:
        return self.weight_fake_quant(self.weight)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """A module with the parameters and the qconfig of a float one, or of one in a row."""
        kinds = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple) else (cls._FLOAT_MODULE,)
        if type(mod) not in kinds:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for "
                                 f"{kinds[0].__name__}, got {type(mod).__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        qconfig = mod.qconfig
        if not qconfig:
            raise AssertionError("Input float module must have a valid qconfig")
        row = mod
        if isinstance(mod, nn.Sequential):
            mod = mod[0]
        result = cls._like(mod, qconfig, row)
        result.weight, result.bias = mod.weight, getattr(mod, "bias", None)
        return result

    @classmethod
    def _like(cls, mod: Any, qconfig: Any, row: Any) -> Any:
        """One of this class with the sizes of a float module, the first of `row`."""
        raise NotImplementedError(f"{cls.__name__}._like")


class Linear(_FakeQuantizedWeight, nn.Linear):
    """`nn.Linear` with a rounded weight.

    >>> import flambeau
    >>> from flambeau.ao.nn import qat
    >>> from flambeau.ao.quantization import default_qat_qconfig
    >>> qat.Linear(2, 3, qconfig=default_qat_qconfig)(flambeau.ones(1, 2)).shape
    torch.Size([1, 3])
    """

    _FLOAT_MODULE = (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 qconfig: Any = None, device: Any = None, dtype: Any = None):
        super().__init__(in_features, out_features, bias, device, dtype, qconfig=qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.linear(input, self._rounded_weight, self.bias)

    @classmethod
    def _like(cls, mod: Any, qconfig: Any, row: Any) -> Any:
        return cls(mod.in_features, mod.out_features, bias=mod.bias is not None, qconfig=qconfig)

    def to_float(self) -> Any:
        """The float module with these parameters."""
        result = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        return _with_parameters(result, self)


def _with_parameters(result: Any, source: Any) -> Any:
    result.weight = nn.Parameter(source.weight.detach())
    if source.bias is not None:
        result.bias = nn.Parameter(source.bias.detach())
    result.train(source.training)
    return result


@define_in_subclasses("forward")
class _ConvNd(_FakeQuantizedWeight):
    """A convolution with a rounded weight."""

    def forward(self, input: Tensor) -> Tensor:
        own: Any = self
        return own._conv_forward(input, self._rounded_weight, own.bias)

    @classmethod
    def _like(cls, mod: Any, qconfig: Any, row: Any) -> Any:
        return cls(mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding,
                   mod.dilation, mod.groups, mod.bias is not None, mod.padding_mode,
                   qconfig=qconfig)

    def to_float(self) -> Any:
        """The float module with these parameters, and a `ReLU` behind if this has one."""
        own: Any = self
        conv = _with_parameters(own._FLOAT_CONV_MODULE(
            own.in_channels, own.out_channels, own.kernel_size, own.stride, own.padding,
            own.dilation, own.groups, own.bias is not None, own.padding_mode), self)
        return conv


@define_in_subclasses("__init__")
class _Conv(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", qconfig: Any = None, device: Any = None,
                 dtype: Any = None):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, device, dtype, qconfig=qconfig)


class Conv1d(_Conv, nn.Conv1d):
    """`nn.Conv1d` with a rounded weight."""

    _FLOAT_MODULE: Any = nn.Conv1d
    _FLOAT_CONV_MODULE = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):
    """`nn.Conv2d` with a rounded weight."""

    _FLOAT_MODULE: Any = nn.Conv2d
    _FLOAT_CONV_MODULE = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):
    """`nn.Conv3d` with a rounded weight."""

    _FLOAT_MODULE: Any = nn.Conv3d
    _FLOAT_CONV_MODULE = nn.Conv3d


class _Table(_FakeQuantizedWeight):
    def _watch(self, qconfig: Any) -> None:
        import flambeau
        scheme = qconfig.weight().qscheme
        if scheme is not flambeau.per_channel_affine_float_qparams:
            raise AssertionError("Embedding weights requires a qscheme of "
                                 f"torch.per_channel_affine_float_qparams Got {scheme}")
        super()._watch(qconfig)


class Embedding(_Table, nn.Embedding):
    """`nn.Embedding` with a rounded table."""

    _FLOAT_MODULE = nn.Embedding

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
                 device: Any = None, dtype: Any = None, qconfig: Any = None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type,
                         scale_grad_by_freq, sparse, _weight, device=device, dtype=dtype,
                         qconfig=qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.embedding(input, self._rounded_weight, self.padding_idx,
                                       self.max_norm, self.norm_type, self.scale_grad_by_freq,
                                       self.sparse)

    @classmethod
    def _like(cls, mod: Any, qconfig: Any, row: Any) -> Any:
        return cls(mod.num_embeddings, mod.embedding_dim, mod.padding_idx, mod.max_norm,
                   mod.norm_type, mod.scale_grad_by_freq, mod.sparse, mod.weight, qconfig=qconfig)

    def to_float(self) -> nn.Embedding:
        """The float module with this table."""
        return nn.Embedding(self.num_embeddings, self.embedding_dim, self.padding_idx,
                            self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse,
                            self.weight.detach()).train(self.training)


class EmbeddingBag(_Table, nn.EmbeddingBag):
    """`nn.EmbeddingBag` with a rounded table."""

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                 sparse: bool = False, _weight: Any = None, include_last_offset: bool = False,
                 padding_idx: int | None = None, qconfig: Any = None, device: Any = None,
                 dtype: Any = None):
        super().__init__(num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq,
                         mode, sparse, _weight, include_last_offset, padding_idx, device=device,
                         dtype=dtype, qconfig=qconfig)

    def forward(self, input: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:
        return nn.functional.embedding_bag(
            input, self._rounded_weight, offsets, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
            self.include_last_offset, self.padding_idx)

    @classmethod
    def _like(cls, mod: Any, qconfig: Any, row: Any) -> Any:
        return cls(mod.num_embeddings, mod.embedding_dim, mod.max_norm, mod.norm_type,
                   mod.scale_grad_by_freq, mod.mode, mod.sparse, mod.weight,
                   mod.include_last_offset, mod.padding_idx, qconfig=qconfig)

    def to_float(self) -> nn.EmbeddingBag:
        """The float module with this table."""
        return nn.EmbeddingBag(self.num_embeddings, self.embedding_dim, self.max_norm,
                               self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
                               self.weight.detach(), self.include_last_offset,
                               self.padding_idx).train(self.training)

parts(__name__, {
    "modules": "*",
    "modules.conv": "Conv1d Conv2d Conv3d",
    "modules.embedding_ops": "Embedding EmbeddingBag",
    "modules.linear": "Linear"})
