"""Modules with quantised weights that quantise what comes in, and give floats."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.lazy.modules import parts
from flambeau._support.own_methods import define_in_subclasses
from flambeau.ao.nn import qat
from flambeau.ao.nn.quantized.modules import conv as static_conv
from flambeau.ao.nn.quantized.modules import linear as static_linear
from flambeau.ao.nn.quantized.modules.utils import _Described, _quantize_weight
from flambeau.nn.modules import rnn as float_rnn
from flambeau.nn.utils.rnn import PackedSequence
from flambeau.ops.quantized import library as ops

__all__ = ["GRU", "LSTM", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
           "ConvTranspose3d", "GRUCell", "LSTMCell", "Linear", "RNNCell"]
_KIND = "DynamicQuantized"


def _weight_observer(mod: Any) -> Any:
    from flambeau.ao.quantization.qconfig import default_dynamic_qconfig
    observer = (getattr(mod, "qconfig", None) or default_dynamic_qconfig).weight()
    if observer.dtype not in (flambeau.qint8, flambeau.float16):
        raise AssertionError("The only supported dtypes for dynamic quantized linear are qint8 and "
                             f"float16 got: {observer.dtype}")
    return observer


def _packed(weight: Tensor, bias: Any, observer: Any) -> Any:
    """What the products take, in the type that the observer says."""
    if observer.dtype is flambeau.float16:
        return ops.linear_prepack_fp16(weight.detach().float(), bias)
    observer(weight)
    return ops.linear_prepack(_quantize_weight(weight.detach().float(), observer), bias)


def _prepacked(weight: Tensor, bias: Any) -> Any:
    """What the products take of a weight that is quantised already, or for float16."""
    return (ops.linear_prepack if weight.is_quantized else ops.linear_prepack_fp16)(weight, bias)


class Linear(static_linear.Linear):
    """x Wᵀ + b of a float tensor, which is quantised to span its range.

    >>> from flambeau.ao.nn.quantized import dynamic
    >>> dynamic.Linear(2, 3)
    DynamicQuantizedLinear(in_features=2, out_features=3, dtype=torch.qint8, \
qscheme=torch.per_tensor_affine)
    """

    _version = 4
    _kind = _KIND
    _product = staticmethod(ops.linear_dynamic)
    _half_product: Any = staticmethod(ops.linear_dynamic_fp16)

    @classmethod
    def from_reference(cls, ref_qlinear: Any) -> Any:
        """The quantised form of a module from `quantized.reference`, or of one in a row."""
        return cls._from_row_or_module(ref_qlinear)

    @classmethod
    def _from_row_or_module(cls, mod: Any) -> Any:
        mod = cls._first(mod) if isinstance(mod, nn.Sequential) else mod
        result = cls(mod.in_features, mod.out_features, dtype=mod.weight_dtype)
        result.set_weight_bias(mod.get_quantized_weight(), mod.bias)
        return result

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params
        if packed.dtype is flambeau.float16:
            return self._half_product(x, packed._packed_params)
        return self._product(x, packed._packed_params, reduce_range=True).to(x.dtype)

    def extra_repr(self) -> str:
        dtype = self._packed_params.dtype
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={dtype}"
        return text if dtype is not flambeau.qint8 else f"{text}, qscheme={self.weight().qscheme()}"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module, or of one trained with rounding."""
        kinds = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple) else (cls._FLOAT_MODULE,)
        if type(mod) not in (*kinds, qat.dynamic.Linear):
            raise AssertionError("nn.quantized.dynamic.Linear.from_float only works for one of "
                                 f"{[kind.__name__ for kind in kinds]}, got {type(mod)}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        qconfig_of = mod
        if isinstance(mod, nn.Sequential):
            mod = mod[0]
        observer = _weight_observer(qconfig_of)
        result = cls(mod.in_features, mod.out_features, dtype=observer.dtype)
        result._packed_params._packed_params = _packed(mod.weight, mod.bias, observer)
        return result


@define_in_subclasses("forward")
class _DynamicConv(_Described):
    """A convolution that quantises what comes in."""

    _kind = _KIND

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        own: Any = self
        call = getattr(ops, own._op_name() + "_dynamic")
        return call(own._padded(input), own._packed_params, reduce_range)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module."""
        if not hasattr(mod, "qconfig"):
            from flambeau.ao.quantization.qconfig import default_dynamic_qconfig
            mod.qconfig = default_dynamic_qconfig
        base: Any = super()
        return base.from_float(mod, use_precomputed_fake_quant)


def _dynamic(name: str) -> Any:
    static = getattr(static_conv, name)
    doc = f"`nn.{name}` with a quantised weight, of a float tensor that is quantised first."
    return type(name, (_DynamicConv, static), {"__doc__": doc, "__module__": __name__})


class Conv1d(_DynamicConv, static_conv.Conv1d):
    """`nn.Conv1d` with a quantised weight, of a float tensor that is quantised first.

    `reduce_range` says nothing here: `forward` takes it.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
                 reduce_range: bool = True):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                         bias, padding_mode, device, dtype)


Conv2d, Conv3d = _dynamic("Conv2d"), _dynamic("Conv3d")
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (
    _dynamic(f"ConvTranspose{n}d") for n in (1, 2, 3))

# ---- recurrent networks --------------------------------------------------------------------------


class PackedParameter(nn.Module):
    """The two weights of a layer and direction, as the products take them."""

    def __init__(self, param: Any):
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        self.param = state_dict.pop(prefix + "param")
        super()._load_from_state_dict(state_dict, prefix, *args)


@define_in_subclasses("forward", "from_float", "from_reference")
class RNNBase(_Described):
    """A stack of recurrent layers; every product quantises what comes in."""

    _kind = _KIND
    _version = 2
    _FLOAT_MODULE: Any
    _num_directions: Any = float_rnn.RNNBase._num_directions
    check_hidden_size: Any = float_rnn.RNNBase.check_hidden_size
    permute_hidden: Any = float_rnn.RNNBase.permute_hidden

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1,
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, dtype: Any = flambeau.qint8):
        super().__init__()
        self._init(self._FLOAT_MODULE(input_size, hidden_size, num_layers, bias, batch_first,
                                      dropout, bidirectional), dtype)

    def _init(self, mod: Any, dtype: Any, observe: Any = None) -> None:
        from flambeau.ao.quantization.qconfig import (
            default_dynamic_qconfig,
            float16_dynamic_qconfig,
        )
        if dtype not in (flambeau.qint8, flambeau.float16):
            raise RuntimeError(f"Unsupported dtype: {dtype}")
        for name in ("mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first",
                     "dropout", "bidirectional"):
            setattr(self, name, getattr(mod, name))
        self.dtype, self.version, self.training, self.proj_size = dtype, 2, False, 0
        usual = float16_dynamic_qconfig if dtype is flambeau.float16 else default_dynamic_qconfig
        watch = observe or usual.weight
        pairs = []
        for end in self._ends():
            pairs.append(PackedParameter(tuple(
                _packed(getattr(mod, f"weight_{kind}_{end}"),
                        getattr(mod, f"bias_{kind}_{end}", None), watch())
                for kind in ("ih", "hh"))))
        self._all_weight_values = nn.ModuleList(pairs)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module."""
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM "
                                 "and nn.GRU")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        observer = _weight_observer(mod)
        result = cls.__new__(cls)
        nn.Module.__init__(result)
        result._init(mod, observer.dtype, lambda: _weight_observer(mod))
        return result

    def extra_repr(self) -> str:
        return float_rnn.RNNBase.extra_repr(self)           # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The quantised form of a module from `quantized.reference`."""
        made: Any = cls
        result = made(ref_mod.input_size, ref_mod.hidden_size, ref_mod.num_layers, ref_mod.bias,
                      ref_mod.batch_first, ref_mod.dropout, ref_mod.bidirectional,
                      ref_mod.weight_ih_l0_dtype)
        result.set_weight_bias(ref_mod.get_quantized_weight_bias_dict())
        return result

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Take quantised weights and biases by their names in the float module."""
        self._all_weight_values = nn.ModuleList(
            PackedParameter(tuple(
                _prepacked(weight_bias_dict[f"weight_{kind}_{end}"],
                           weight_bias_dict[f"bias_{kind}_{end}"]) for kind in ("ih", "hh")))
            for end in self._ends())

    def _ends(self) -> list[str]:
        own: Any = self
        return [f"l{layer}{way}" for layer in range(own.num_layers)
                for way in ("", "_reverse")[:2 if own.bidirectional else 1]]

    def get_weight(self) -> dict[str, Tensor]:
        """The quantised weights by name."""
        return self._parts("weight", 0)

    def get_bias(self) -> dict[str, Tensor]:
        """The biases by name."""
        return self._parts("bias", 1)

    def _parts(self, title: str, at: int) -> dict[str, Tensor]:
        return {f"{title}_{kind}_{end}": packed.unpack()[at]
                for end, pair in zip(self._ends(), self._all_weight_values)
                for kind, packed in zip(("ih", "hh"), pair.param)}

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of the state; the input has time before the batch."""
        own: Any = self
        batch = input.size(1) if batch_sizes is None else int(batch_sizes[0])
        return own.num_layers * self._num_directions, batch, own.hidden_size

    def check_input(self, input: Tensor, batch_sizes: Any) -> None:
        """Raise if the input has the wrong size."""
        own: Any = self
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if own.input_size != input.size(-1):
            raise RuntimeError("input.size(-1) must be equal to input_size. "
                               f"Expected {own.input_size}, got {input.size(-1)}")

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Any) -> None:
        """Raise if the input or the state has the wrong size."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes),
                               msg="Expected hidden size {}, got {}")

    def forward(self, input: Any, hx: Any = None) -> Any:
        own: Any = self
        packed = isinstance(input, PackedSequence)
        x, sizes, order, back = input if packed else (input, None, None, None)
        if not packed and own.batch_first:
            x = x.transpose(0, 1)
        batch = int(sizes[0]) if packed else x.size(1)
        states = 2 if own.mode == "LSTM" else 1
        if hx is None:
            directions = 2 if own.bidirectional else 1
            hx = (flambeau.zeros(own.num_layers * directions, batch, own.hidden_size),) * states
        else:
            hx = hx if states == 2 else (hx,)
            hx = tuple(h if order is None else h.index_select(1, order) for h in hx)
        self.check_forward_args(x, hx if states == 2 else hx[0], sizes)
        y, last = ops.dynamic_network(
            own.mode, x, hx, [pair.param for pair in self._all_weight_values],
            own.num_layers, float(own.dropout), self.training, own.bidirectional,
            sizes.tolist() if packed else None)
        if packed:
            y = PackedSequence(y, sizes, order, back)
        elif own.batch_first:
            y = y.transpose(0, 1)
        last = [h if back is None else h.index_select(1, back) for h in last]
        return y, tuple(last) if states == 2 else last[0]


class LSTM(RNNBase):
    """`nn.LSTM` with quantised weights.

    >>> from flambeau.ao.nn.quantized import dynamic
    >>> y, (h, c) = dynamic.LSTM(3, 2)(flambeau.ones(4, 1, 3))
    >>> y.shape
    torch.Size([4, 1, 2])
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)

    permute_hidden: Any = float_rnn.LSTM.permute_hidden

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Any) -> None:
        """Raise if the input or a state has the wrong size."""
        self.check_input(input, batch_sizes)
        wanted = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], wanted, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], wanted, "Expected hidden[1] size {}, got {}")


class GRU(RNNBase):
    """`nn.GRU` with quantised weights."""

    _FLOAT_MODULE = nn.GRU

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("GRU", *args, **kwargs)


@define_in_subclasses("forward", "from_float")
class RNNCellBase(_Described):
    """One step of a recurrent network; every product quantises what comes in."""

    _kind = _KIND
    _FLOAT_MODULE: Any

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True,
                 num_chunks: int = 4, dtype: Any = flambeau.qint8):
        super().__init__()
        self._make(input_size, hidden_size, bias, dtype)

    def _make(self, input_size: int, hidden_size: int, bias: bool, dtype: Any,
              **options: Any) -> None:
        from flambeau.ao.quantization.qconfig import (
            default_dynamic_qconfig,
            float16_dynamic_qconfig,
        )
        usual = float16_dynamic_qconfig if dtype is flambeau.float16 else default_dynamic_qconfig
        self._take(self._FLOAT_MODULE(input_size, hidden_size, bias, **options), usual.weight)

    def _take(self, mod: Any, observe: Any) -> None:
        self.input_size, self.hidden_size, self.bias = mod.input_size, mod.hidden_size, mod.bias
        if hasattr(mod, "nonlinearity"):
            self.nonlinearity = mod.nonlinearity
        self.weight_dtype = observe().dtype
        self._packed_weight_ih = _packed(mod.weight_ih, mod.bias_ih, observe())
        self._packed_weight_hh = _packed(mod.weight_hh, mod.bias_hh, observe())

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"nn.quantized.dynamic.{cls.__name__}.from_float only works for "
                                 f"{cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        result = cls.__new__(cls)
        nn.Module.__init__(result)
        result._take(mod, lambda: _weight_observer(mod))
        return result

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The quantised form of a module from `quantized.reference`."""
        made: Any = cls
        options = {"nonlinearity": ref_mod.nonlinearity} if hasattr(ref_mod, "nonlinearity") else {}
        result = made(ref_mod.input_size, ref_mod.hidden_size, ref_mod.bias, **options,
                      dtype=ref_mod.weight_ih_dtype)
        result.set_weight_bias({
            "weight": {name: ref_mod._quantized(name) for name in ("weight_ih", "weight_hh")},
            "bias": {name: getattr(ref_mod, name) for name in ("bias_ih", "bias_hh")}})
        return result

    def set_weight_bias(self, weight_bias_dict: dict[str, dict[str, Any]]) -> None:
        """Take quantised weights and biases by their names in the float module."""
        weights, biases = weight_bias_dict["weight"], weight_bias_dict["bias"]
        self._packed_weight_ih = _prepacked(weights["weight_ih"], biases["bias_ih"])
        self._packed_weight_hh = _prepacked(weights["weight_hh"], biases["bias_hh"])

    def check_forward_input(self, input: Tensor) -> None:
        """Raise if the input has another size than the weights."""
        if input.size(1) != self.input_size:
            raise RuntimeError("input has inconsistent input_size: "
                               f"got {input.size(1)}, expected {self.input_size}")

    def check_forward_hidden(self, input: Tensor, hx: Tensor, hidden_label: str = "") -> None:
        """Raise if a state has another size than the input and the weights."""
        if input.size(0) != hx.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden"
                               f"{hidden_label} batch size {hx.size(0)}")
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(f"hidden{hidden_label} has inconsistent hidden_size: "
                               f"got {hx.size(1)}, expected {self.hidden_size}")

    def _mode(self) -> str:
        return type(self).__name__.removesuffix("Cell").lower()

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        lstm = isinstance(self, LSTMCell)
        if hx is None:
            zeros = flambeau.zeros(input.size(0), self.hidden_size)
            hx = (zeros, zeros) if lstm else zeros
        self.check_forward_input(input)
        if lstm:
            self.check_forward_hidden(input, hx[0], "[0]")
            self.check_forward_hidden(input, hx[1], "[1]")
        else:
            self.check_forward_hidden(input, hx, "")
        last = ops.dynamic_cell(self._mode(), input, tuple(hx) if lstm else (hx,),
                                self._packed_weight_ih, self._packed_weight_hh)
        return last if lstm else last[0]

    def get_weight(self) -> dict[str, Tensor]:
        """The quantised weights by name."""
        return {"weight_ih": self._packed_weight_ih.unpack()[0],
                "weight_hh": self._packed_weight_hh.unpack()[0]}

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return {"bias_ih": self._packed_weight_ih.unpack()[1],
                "bias_hh": self._packed_weight_hh.unpack()[1]}

    def extra_repr(self) -> str:
        return float_rnn.RNNCellBase.extra_repr(self)       # type: ignore[arg-type]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            setattr(self, name, state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, *args)


class RNNCell(RNNCellBase):
    """`nn.RNNCell` with quantised weights."""

    _FLOAT_MODULE = nn.RNNCell

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True,
                 nonlinearity: str = "tanh", dtype: Any = flambeau.qint8):
        nn.Module.__init__(self)
        self._make(input_size, hidden_size, bias, dtype, nonlinearity=nonlinearity)

    def _mode(self) -> str:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return f"rnn_{self.nonlinearity}"


class LSTMCell(RNNCellBase):
    """`nn.LSTMCell` with quantised weights."""
    _FLOAT_MODULE = nn.LSTMCell

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)


class GRUCell(RNNCellBase):
    """`nn.GRUCell` with quantised weights."""

    _FLOAT_MODULE = nn.GRUCell

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True,
                 dtype: Any = flambeau.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

parts(__name__, {
    "modules": "*",
    "modules.conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "modules.linear": "Linear",
    "modules.rnn": "PackedParameter RNNBase LSTM GRU RNNCellBase RNNCell LSTMCell GRUCell"})
