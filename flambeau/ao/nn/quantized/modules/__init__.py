"""Modules that compute on quantised tensors."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.lazy.modules import lazy_modules
from flambeau.ao.nn.quantized.modules.activation import *
from flambeau.ao.nn.quantized.modules.batchnorm import BatchNorm2d, BatchNorm3d
from flambeau.ao.nn.quantized.modules.conv import *
from flambeau.ao.nn.quantized.modules.dropout import Dropout
from flambeau.ao.nn.quantized.modules.embedding_ops import Embedding, EmbeddingBag
from flambeau.ao.nn.quantized.modules.functional_modules import *
from flambeau.ao.nn.quantized.modules.linear import Linear
from flambeau.ao.nn.quantized.modules.normalization import *
from flambeau.ao.nn.quantized.modules.rnn import LSTM, MultiheadAttention

__all__ = ["BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
           "ConvTranspose2d", "ConvTranspose3d", "DeQuantize", "Dropout", "ELU", "Embedding",
           "EmbeddingBag", "FXFloatFunctional", "FloatFunctional", "GroupNorm", "Hardswish",
           "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LSTM", "LayerNorm", "LeakyReLU",
           "Linear", "MultiheadAttention", "PReLU", "QFunctional", "Quantize", "ReLU6", "Sigmoid",
           "Softmax"]
__getattr__ = lazy_modules(__name__, "utils", "linear")


class Quantize(nn.Module):
    """Quantises float tensors.

    >>> from flambeau.ao.nn.quantized import Quantize
    >>> Quantize(0.5, 1, flambeau.quint8)(flambeau.tensor([1.0])).int_repr()
    tensor([3], dtype=torch.uint8)
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: float, zero_point: int, dtype: Any, factory_kwargs: Any = None):
        super().__init__()
        self.register_buffer("scale", flambeau.tensor([scale]))
        self.register_buffer("zero_point", flambeau.tensor([zero_point], dtype=flambeau.long))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:
        return flambeau.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> Quantize:
        """From a `QuantStub` that was observed."""
        scale, zero = mod.activation_post_process.calculate_qparams()
        return Quantize(scale.float().item(), zero.long().item(),
                        mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Gives the floats that quantised tensors stand for."""

    def forward(self, Xq: Tensor) -> Tensor:
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """From a `DeQuantStub`."""
        return DeQuantize()


class MaxPool2d(nn.MaxPool2d):
    """`MaxPool2d` of a quantised tensor."""
