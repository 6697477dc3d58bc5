"""Float modules that compute with the numbers their quantised weights would stand for."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.lazy_modules import parts

__all__ = ["GRU", "LSTM", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
           "ConvTranspose3d", "Embedding", "EmbeddingBag", "GRUCell", "LSTMCell", "Linear",
           "RNNCell"]

_USUAL: dict[str, Any] = {"qscheme": flambeau.per_tensor_affine, "dtype": flambeau.quint8,
                          "scale": 1.0, "zero_point": 0}
_SCHEMES = (None, flambeau.per_tensor_affine, flambeau.per_channel_affine,
            flambeau.per_channel_affine_float_qparams)
_QUANTIZED = (flambeau.quint8, flambeau.qint8, flambeau.quint4x2, flambeau.qint32)


class ReferenceQuantizedModule(nn.Module):
    """Rounds some parameters of the float class that follows among the bases.

    For each there are buffers `<name>_scale`, `<name>_zero_point` and `<name>_axis`.
    """

    _IS_REFERENCE = True

    def _round(self, name: str, qparams: Any) -> None:
        """Round the parameter `name` as the dictionary says."""
        qparams = qparams or _USUAL
        scheme, dtype = qparams["qscheme"], qparams["dtype"]
        if scheme not in _SCHEMES:
            raise AssertionError(f"qscheme: {scheme} is not supported in reference quantized "
                                 f"{self._get_name()}")
        self._rounded = [*getattr(self, "_rounded", []), name]
        setattr(self, f"{name}_qscheme", scheme)
        setattr(self, f"{name}_dtype", dtype)
        given = qparams if dtype in _QUANTIZED else _USUAL
        for key, kind in (("scale", flambeau.float), ("zero_point", flambeau.int),
                          ("axis", flambeau.int)):
            value = given.get(key, 0)
            value = value.detach().clone() if isinstance(value, Tensor) \
                else flambeau.tensor(value, dtype=kind)
            self.register_buffer(f"{name}_{key}", value)

    def _quantized(self, name: str) -> Tensor:
        weight, dtype = self._parameters[name], getattr(self, f"{name}_dtype")
        scheme, scale = getattr(self, f"{name}_qscheme"), getattr(self, f"{name}_scale")
        zero = getattr(self, f"{name}_zero_point")
        if scheme is None:
            return weight.to(dtype)
        if scheme is flambeau.per_tensor_affine:
            return flambeau.quantize_per_tensor(weight.detach(), float(scale), int(zero), dtype)
        return flambeau.quantize_per_channel(weight.detach(), scale, zero,
                                             int(getattr(self, f"{name}_axis")), dtype)

    def _numbers(self, name: str) -> Tensor:
        """The numbers that the quantised parameter stands for; float16 stays what it is."""
        dtype = getattr(self, f"{name}_dtype")
        if dtype in _QUANTIZED:
            return self._quantized(name).dequantize()
        return self._parameters[name].to(dtype).to(self._parameters[name].dtype)

    def get_weight(self) -> Tensor:
        """The numbers that the quantised weight stands for."""
        return self._numbers("weight")

    def get_quantized_weight(self) -> Tensor:
        """The quantised weight."""
        return self._quantized("weight")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        own: Any = self._parameters
        before = dict(own)
        base: Any = super()
        try:
            own.update({name: self._numbers(name) for name in self._rounded})
            return base.forward(*args, **kwargs)
        finally:
            own.update(before)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"


class _OneWeight(ReferenceQuantizedModule):
    """What has one weight also saves how it is quantised."""

    _arguments: tuple[str, ...] = ()
    _FLOAT_MODULE: Any

    def __init__(self, *args: Any, weight_qparams: Any = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._round("weight", weight_qparams)

    @classmethod
    def from_float(cls, float_module: Any, weight_qparams: dict[str, Any]) -> Any:
        """A module with the parameters of a float one, rounded as the dictionary says."""
        made: Any = cls
        given = {name: getattr(float_module, name) for name in cls._arguments}
        if "bias" in float_module._parameters:
            given["bias"] = float_module.bias is not None
        result = made(**given, weight_qparams=weight_qparams)
        for name, parameter in float_module._parameters.items():
            setattr(result, name, None if parameter is None else nn.Parameter(parameter.detach()))
        return result

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for key in ("weight_qscheme", "weight_dtype"):
            destination[prefix + key] = getattr(self, key)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for key in ("weight_qscheme", "weight_dtype"):
            setattr(self, key, state_dict.pop(prefix + key, getattr(self, key)))
        for key in ("weight_scale", "weight_zero_point", "weight_axis"):
            if prefix + key in state_dict:
                setattr(self, key, flambeau.empty_like(state_dict[prefix + key]))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _reference(name: str, *arguments: str) -> Any:
    base = getattr(nn, name)
    doc = f"`nn.{name}` with the numbers that a quantised weight stands for."
    return type(name, (_OneWeight, base), {"__doc__": doc, "__module__": __name__,
                                           "_arguments": arguments, "_FLOAT_MODULE": base})


_CONV = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups",
         "padding_mode")
Linear = _reference("Linear", "in_features", "out_features")
Conv1d, Conv2d, Conv3d = (_reference(f"Conv{n}d", *_CONV) for n in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (
    _reference(f"ConvTranspose{n}d", *_CONV, "output_padding") for n in (1, 2, 3))
Embedding = _reference("Embedding", "num_embeddings", "embedding_dim", "padding_idx", "max_norm",
                       "norm_type", "scale_grad_by_freq", "sparse")
EmbeddingBag = _reference("EmbeddingBag", "num_embeddings", "embedding_dim", "max_norm",
                          "norm_type", "scale_grad_by_freq", "mode", "sparse",
                          "include_last_offset", "padding_idx")


class _Recurrent(ReferenceQuantizedModule):
    """What has several weights takes a dictionary for each, by name."""

    _arguments: tuple[str, ...]

    def __init__(self, *args: Any, weight_qparams_dict: Any = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        for name in [n for n in self._parameters if n.startswith("weight")]:
            self._round(name, (weight_qparams_dict or {}).get(name))

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any) -> Any:
        """A module with the parameters of a float one, rounded as the dictionaries say."""
        made: Any = cls
        result = made(**{name: getattr(mod, name) for name in cls._arguments},
                      weight_qparams_dict=weight_qparams_dict)
        for name, parameter in mod._parameters.items():
            setattr(result, name, None if parameter is None else nn.Parameter(parameter.detach()))
        return result


def _recurrent(name: str, *arguments: str) -> Any:
    base = getattr(nn, name)
    doc = f"`nn.{name}` with the numbers that quantised weights stand for."
    return type(name, (_Recurrent, base), {
        "__doc__": doc, "__module__": __name__, "_FLOAT_MODULE": base,
        "_arguments": ("input_size", "hidden_size", "bias", *arguments)})


_STACK = ("num_layers", "batch_first", "dropout", "bidirectional")
RNNCell = _recurrent("RNNCell", "nonlinearity")
LSTMCell, GRUCell = _recurrent("LSTMCell"), _recurrent("GRUCell")
LSTM, GRU = _recurrent("LSTM", *_STACK), _recurrent("GRU", *_STACK)

parts(__name__, "modules modules.conv modules.linear modules.sparse modules.utils")
