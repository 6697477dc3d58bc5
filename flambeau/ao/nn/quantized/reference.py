"""Float modules that compute with the numbers their quantised weights would stand for."""
from __future__ import annotations

from inspect import Signature, signature
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.lazy.modules import parts
from flambeau._support.own_methods import copy_method, define_in_subclasses, of_class
from flambeau._support.signatures import extended, refusing, signed

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
    _takes: Signature                       # of __init__
    _qparams = "weight_qparams"             # its last parameter
    _fixed: tuple[str, ...] = ()            # parameters of the float class that it does not offer

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

    def __init__(self, *args: Any, **kwargs: Any):
        given = type(self)._takes.bind(self, *args, **kwargs).arguments
        del given["self"]
        qparams = given.pop(self._qparams, None)
        if "bias_" in given:
            given["bias"] = given.pop("bias_")
        super().__init__(**given, **dict.fromkeys(self._fixed, False))
        self._round_all(qparams)

    def _round_all(self, qparams: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}._round_all")

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

    def _round_all(self, qparams: Any) -> None:
        self._round("weight", qparams)

    @classmethod
    def _from_float(cls, float_module: Any, weight_qparams: dict[str, Any]) -> Any:
        made: Any = cls
        given = {name: getattr(float_module, name) for name in cls._arguments}
        if "bias" in float_module._parameters:
            bias = next(name for name in ("bias", "bias_") if name in cls._takes.parameters)
            given[bias] = float_module.bias is not None
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


def _reference(name: str, first: str, *arguments: str, known: bool = False,
               renamed: dict[str, str] | None = None, fixed: tuple[str, ...] = ()) -> Any:
    """The class of that name. `from_float` calls its argument `first`, and takes a flag for what is
    `known` beforehand."""
    base = getattr(nn, name)

    def from_float(cls: Any, module: Any, weight_qparams: Any,
                   use_precomputed_fake_quant: bool = False) -> Any:
        return cls._from_float(module, weight_qparams)

    from_float.__qualname__ = f"{name}.from_float"
    from_float.__doc__ = "A module with the parameters of a float one, rounded as is said."
    without = () if known else ("use_precomputed_fake_quant",)
    signed(extended(from_float, renamed={"module": first}, without=without))(from_float)
    doc = f"`nn.{name}` with the numbers that a quantised weight stands for."
    return _of_base(name, base, _OneWeight, doc, renamed=renamed, _arguments=arguments,
                    _fixed=fixed, from_float=classmethod(from_float))


def _checking(method: Any, refuse: Any) -> Any:
    """That method, which Python refuses to call as `refuse` does."""
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        refuse(self, *args, **kwargs)
        return method(self, *args, **kwargs)
    return checked


def _of_base(name: str, base: Any, kind: Any, doc: str, renamed: Any = None,
             **attributes: Any) -> Any:
    """A class whose methods show the parameters of the float class's."""
    made: Any = type(name, (kind, base), attributes | {"__doc__": doc, "__module__": __name__,
                                                       "_FLOAT_MODULE": base})
    more = {} if "args" in signature(base).parameters else {kind._qparams: None}
    made._takes = extended(base.__init__, without=attributes.get("_fixed", ()), renamed=renamed,
                           **more)
    is_product = "Conv" in name or name == "Linear"
    forward = extended(base.forward, renamed={"input": "x"} if is_product else None)
    for method, shown in (("__init__", made._takes), ("forward", forward)):
        copy_method(made, method, _checking(getattr(kind, method),
                                            refusing(shown, f"{name}.{method}")))
        signed(shown)(vars(made)[method])
    return made


_CONV = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups",
         "padding_mode")
Linear = _reference("Linear", "float_linear", "in_features", "out_features",
                    renamed={"bias": "bias_"})
Conv1d, Conv2d, Conv3d = (_reference(f"Conv{n}d", "float_conv", *_CONV) for n in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (
    _reference(f"ConvTranspose{n}d", "float_conv", *_CONV, "output_padding") for n in (1, 2, 3))
Embedding = _reference("Embedding", "mod", "num_embeddings", "embedding_dim", "padding_idx",
                       "max_norm", "norm_type", "scale_grad_by_freq", "sparse", fixed=("_freeze",))
EmbeddingBag = _reference("EmbeddingBag", "mod", "num_embeddings", "embedding_dim", "max_norm",
                          "norm_type", "scale_grad_by_freq", "mode", "sparse",
                          "include_last_offset", "padding_idx", known=True)


@define_in_subclasses("from_float")
class _Recurrent(ReferenceQuantizedModule):
    """What has several weights takes a dictionary for each, by name."""

    _arguments: tuple[str, ...]

    _qparams = "weight_qparams_dict"

    def _round_all(self, qparams: Any) -> None:
        for name in [n for n in self._parameters if n.startswith("weight")]:
            self._round(name, (qparams or {}).get(name))

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any) -> Any:
        """A module with the parameters of a float one, rounded as the dictionaries say."""
        made: Any = cls
        result = made(**{name: getattr(mod, name) for name in cls._arguments},
                      weight_qparams_dict=weight_qparams_dict)
        for name, parameter in mod._parameters.items():
            setattr(result, name, None if parameter is None else nn.Parameter(parameter.detach()))
        return result


class _Cell(_Recurrent):
    def get_quantized_weight_ih(self) -> Tensor:
        """The quantised weight of the input."""
        return self._quantized("weight_ih")

    def get_quantized_weight_hh(self) -> Tensor:
        """The quantised weight of the state."""
        return self._quantized("weight_hh")

    def get_weight_ih(self) -> Tensor:
        """The numbers that the quantised weight of the input stands for."""
        return self._numbers("weight_ih")

    def get_weight_hh(self) -> Tensor:
        """The numbers that the quantised weight of the state stands for."""
        return self._numbers("weight_hh")


of_class("RNNCellBase", _Cell)


@define_in_subclasses("get_flat_weights", "get_quantized_weight_bias_dict")
class _Network(_Recurrent):
    _flat_weights_names: list[str]

    def __init__(self, *args: Any, **kwargs: Any):
        qparams = kwargs.pop(self._qparams, None)
        super(ReferenceQuantizedModule, self).__init__(*args, **kwargs)
        self._round_all(qparams)

    def get_quantized_weight_bias_dict(self) -> dict[str, Any]:
        """The quantised weights, and the biases, by name."""
        return {name: self._quantized(name) if name in self._rounded
                else getattr(self, name, None) for name in self._flat_weights_names}

    def get_flat_weights(self) -> list[Any]:
        """The numbers that the weights stand for, and the biases, in the order of the float
        module."""
        return [self._numbers(name) if name in self._rounded else getattr(self, name, None)
                for name in self._flat_weights_names]


class _CellOfLSTM(_Cell):
    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: Any,
                   use_precomputed_fake_quant: bool = False) -> Any:
        """A module with the parameters of a float one, rounded as the dictionaries say."""
        return super().from_float(mod, weight_qparams_dict)


def _recurrent(name: str, kind: Any, *arguments: str) -> Any:
    base = getattr(nn, name)
    doc = f"`nn.{name}` with the numbers that quantised weights stand for."
    return _of_base(name, base, kind, doc,
                    _arguments=("input_size", "hidden_size", "bias", *arguments))


_STACK = ("num_layers", "batch_first", "dropout", "bidirectional")
RNNCell = _recurrent("RNNCell", _Cell, "nonlinearity")
LSTMCell, GRUCell = _recurrent("LSTMCell", _CellOfLSTM), _recurrent("GRUCell", _Cell)
LSTM, GRU = _recurrent("LSTM", _Network, *_STACK), _recurrent("GRU", _Network, *_STACK)

parts(__name__, {
    "modules": "*",
    "modules.conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "modules.linear": "Linear",
    "modules.rnn": "RNNCell LSTMCell GRUCell LSTM GRU",
    "modules.sparse": "Embedding EmbeddingBag",
    "modules.utils": "ReferenceQuantizedModule"})
