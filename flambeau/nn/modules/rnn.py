"""Recurrent layers and cells."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn import init
from flambeau.nn.parameter import Parameter
from flambeau.nn.utils.rnn import PackedSequence

from .module import Module
from .utils import _unusual

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

# How many gates, hence blocks of rows in a weight, the cells have.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _permuted(tensor, permutation, dim=1):
    return tensor if permutation is None else tensor.index_select(dim, permutation)


@define_in_subclasses("forward")
class RNNBase(Module):
    """What the recurrent layers share: weights, checks, packed and unbatched inputs.

    Layer k has `weight_ih_l{k}`, `weight_hh_l{k}`, `bias_ih_l{k}`, `bias_hh_l{k}` and, with
    `proj_size`, `weight_hr_l{k}`; the backward direction's end in ``_reverse``. All are drawn from
    U(-1/√hidden_size, 1/√hidden_size).
    """

    __constants__ = ["mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first",
                     "dropout", "bidirectional", "proj_size"]
    mode: str
    _tensor_word = ""  # the message about a wrong number of dimensions differs for RNN

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1,
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, proj_size: int = 0, device=None, dtype=None) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options(dropout)
        self._all_weights: list[list[str]] = []
        factory = {"device": device, "dtype": dtype}
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._num_directions]:
                self._add_layer(layer, f"_l{layer}{suffix}", factory)
        self.reset_parameters()

    @property
    def _num_directions(self):
        return 2 if self.bidirectional else 1

    def _check_options(self, dropout):
        if (not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1
            or isinstance(dropout, bool)):
            raise ValueError("dropout should be a number in range [0, 1] representing the "
                             "probability of an element being zeroed")
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}", stacklevel=4)
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int),
                           ("hidden_size", int)):
            given = getattr(self, name)
            if not isinstance(given, kind):
                raise TypeError(
                    f"{name} should be of type {kind.__name__}, got: {type(given).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _add_layer(self, layer, suffix, factory):
        rows = _GATES[self.mode] * self.hidden_size
        hidden = self.proj_size or self.hidden_size
        inputs = self.input_size if layer == 0 else hidden * self._num_directions
        shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, hidden)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size > 0:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, name + suffix, Parameter(flambeau.empty(shape, **factory)))
        self._all_weights.append([name + suffix for name in shapes])

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for names in self._all_weights for name in names]

    @property
    def all_weights(self):
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing: how the weights lie in memory makes no difference on the CPU."""

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # -------------------------------------------------------------- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Complain about an input of the wrong dtype or size."""
        weight = self._parameters.get("weight_ih_l0")
        if weight is not None and input.dtype != weight.dtype \
                and not flambeau.is_autocast_enabled("cpu"):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})")
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError("input.size(-1) must be equal to input_size. "
                               f"Expected {self.input_size}, got {input.size(-1)}")

    def _batch_size(self, input, batch_sizes):
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0) if self.batch_first else input.size(1)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes) -> tuple[int, int, int]:
        """The shape of the hidden state."""
        return (self.num_layers * self._num_directions, self._batch_size(input, batch_sizes),
                self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx: Tensor, expected_hidden_size,
                          msg: str = "Expected hidden size {}, got {}") -> None:
        """Complain about a state of the wrong shape."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden, batch_sizes) -> None:
        """Complain about what does not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation: Tensor | None):
        """The state with its sequences in another order."""
        return _permuted(hx, permutation)

    # -------------------------------------------------------------- the call

    def _initial_state(self, input, batch_sizes):
        size = self.get_expected_hidden_size(input, batch_sizes)
        return flambeau.zeros(size, dtype=input.dtype, device=input.device)

    def _check_state_dims(self, input, hx, is_batched):
        if is_batched and hx.dim() != 3:
            raise RuntimeError(
                f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")
        if not is_batched and hx.dim() != 2:
            raise RuntimeError(
                f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")

    def _map_state(self, function, hx):
        return function(hx)

    def _run(self, input, hx, batch_sizes):
        """The output and the last state, by the kernel of this mode."""
        kernel = getattr(flambeau, self.mode.lower())
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            result = kernel(input, hx, self._flat_weights, *options, self.batch_first)
        else:
            result = kernel(input, batch_sizes, hx, self._flat_weights, *options)
        return result[0], result[1:]

    def forward(self, input, hx=None):
        """Run over a sequence (L, N, input_size), (N, L, input_size) if `batch_first`,
        (L, input_size), or packed."""
        packed = input if isinstance(input, PackedSequence) else None
        batch_sizes = sorted_indices = unsorted_indices = None
        is_batched = True
        if packed is not None:
            input, batch_sizes, sorted_indices, unsorted_indices = packed
        else:
            if input.dim() not in (2, 3):
                raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, "
                                 f"got {input.dim()}D{self._tensor_word} instead")
            is_batched = input.dim() == 3
            batch_dim = 0 if self.batch_first else 1
            if hx is not None:
                self._check_state_dims(input, hx, is_batched)
            if not is_batched:
                input = input.unsqueeze(batch_dim)
                if hx is not None:
                    hx = self._map_state(lambda state: state.unsqueeze(1), hx)
        if hx is None:
            hx = self._initial_state(input, batch_sizes)
        elif sorted_indices is not None:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        output, state = self._run(input, hx, batch_sizes)
        state = state if len(state) > 1 else state[0]

        if packed is not None:
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return output, self.permute_hidden(state, unsorted_indices)
        if not is_batched:
            output = output.squeeze(batch_dim)
            state = self._map_state(lambda part: part.squeeze(1), state)
        return output, state

    # -------------------------------------------------------------- printing, copying

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + _unusual(
            self, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0,
            bidirectional=False)

    def __getstate__(self):                 # lists that PyTorch keeps, too
        return {**super().__getstate__(), "_flat_weights_names": self._flat_weights_names,
                "_flat_weights": self._flat_weights}

    def __setstate__(self, d):
        super().__setstate__({name: value for name, value in d.items()
                              if not name.startswith("_flat_weight")})
        self.__dict__.setdefault("proj_size", 0)


class RNN(RNNBase):
    r"""Elman's recurrent network, in `num_layers` layers:

    .. math:: h_t = \tanh(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})

    or relu in tanh's place. Each layer reads the outputs of the one below, with `dropout` between.

    Shape: input (L, N, H_in), state (layers · directions, N, H) → output (L, N, directions · H) and
    the last state.

    Example:
        >>> output, state = nn.RNN(10, 20, 2)(flambeau.ones(5, 3, 10))
        >>> output.shape, state.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    _tensor_word = " tensor"

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            kwargs["nonlinearity"], args = args[3], args[:3] + args[4:]
        nonlinearity = kwargs.pop("nonlinearity", "tanh")
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if nonlinearity not in modes:
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__(modes[nonlinearity], *args, **kwargs)


class GRU(RNNBase):
    r"""Gated recurrent units, in `num_layers` layers:

    .. math::
        r_t = \sigma(W_{ir} x_t + b_{ir} + W_{hr} h_{t-1} + b_{hr}) \\
        z_t = \sigma(W_{iz} x_t + b_{iz} + W_{hz} h_{t-1} + b_{hz}) \\
        n_t = \tanh(W_{in} x_t + b_{in} + r_t \odot (W_{hn} h_{t-1} + b_{hn})) \\
        h_t = (1 - z_t) \odot n_t + z_t \odot h_{t-1}

    The rows of the weights are r, z, n. Cho et al., EMNLP 2014.

    Example:
        >>> output, state = nn.GRU(10, 20, bidirectional=True)(flambeau.ones(5, 3, 10))
        >>> output.shape, state.shape
        (torch.Size([5, 3, 40]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    r"""Long short-term memory, in `num_layers` layers:

    .. math::
        i_t = \sigma(W_{ii} x_t + b_{ii} + W_{hi} h_{t-1} + b_{hi}) \\
        f_t = \sigma(W_{if} x_t + b_{if} + W_{hf} h_{t-1} + b_{hf}) \\
        g_t = \tanh(W_{ig} x_t + b_{ig} + W_{hg} h_{t-1} + b_{hg}) \\
        o_t = \sigma(W_{io} x_t + b_{io} + W_{ho} h_{t-1} + b_{ho}) \\
        c_t = f_t \odot c_{t-1} + i_t \odot g_t, \quad h_t = o_t \odot \tanh(c_t)

    The rows of the weights are i, f, g, o. The state is the pair (h, c); `proj_size` makes h a
    projection of that size. Hochreiter and Schmidhuber, Neural Computation 1997.

    Example:
        >>> output, (h, c) = nn.LSTM(10, 20, proj_size=5)(flambeau.ones(5, 3, 10))
        >>> output.shape, h.shape, c.shape
        (torch.Size([5, 3, 5]), torch.Size([1, 3, 5]), torch.Size([1, 3, 20]))
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes) -> tuple[int, int, int]:
        """The shape of the cell state."""
        return (self.num_layers * self._num_directions, self._batch_size(input, batch_sizes),
                self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden, batch_sizes) -> None:
        self.check_input(input, batch_sizes)
        h_size = self.get_expected_hidden_size(input, batch_sizes)
        c_size = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], h_size, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], c_size, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        return tuple(_permuted(part, permutation) for part in hx)

    def _initial_state(self, input, batch_sizes):
        cell_size = self.get_expected_cell_size(input, batch_sizes)
        h = super()._initial_state(input, batch_sizes)
        return h, flambeau.zeros(cell_size, dtype=input.dtype, device=input.device)

    def _check_state_dims(self, input, hx, is_batched):
        dims = (hx[0].dim(), hx[1].dim())
        if is_batched and dims != (3, 3):
            raise RuntimeError("For batched 3-D input, hx and cx should also be 3-D but got "
                               f"({dims[0]}-D, {dims[1]}-D) tensors")
        if not is_batched and dims != (2, 2):
            raise RuntimeError("For unbatched 2-D input, hx and cx should also be 2-D but got "
                               f"({dims[0]}-D, {dims[1]}-D) tensors")

    def _map_state(self, function, hx):
        return tuple(function(part) for part in hx)


# ------------------------------------------------------------------ cells

class RNNCellBase(Module):
    """What the cells share: `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`."""

    __constants__ = ["input_size", "hidden_size", "bias"]
    bias: bool

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None,
                 dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(flambeau.empty((rows, input_size), **factory))
        self.weight_hh = Parameter(flambeau.empty((rows, hidden_size), **factory))
        for name in ("bias_ih", "bias_hh"):
            value = Parameter(flambeau.empty(rows, **factory)) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + _unusual(
            self, bias=True, nonlinearity="tanh")

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _checked(self, input, states):
        """Input and states with a batch dimension, and whether they came with one."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        is_batched = input.dim() == 2
        for i, state in enumerate(states):
            if states[0] is not None and state.dim() not in (1, 2):
                where = f"hx[{i}]" if len(states) > 1 else "hidden"
                raise ValueError(
                    f"{name}: Expected {where} to be 1D or 2D, got {state.dim()}D instead")
        if not is_batched:
            input = input.unsqueeze(0)
        if (states or not is_batched) and states[0] is None:
            zeros = flambeau.zeros(input.size(0), self.hidden_size, dtype=input.dtype,
                                   device=input.device)
            states = [zeros] * len(states)
        elif not is_batched:
            states = [state.unsqueeze(0) for state in states]
        return input, states, is_batched

    @property
    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh


class RNNCell(RNNCellBase):
    r"""One step of an `RNN`: :math:`h' = \tanh(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})`.

    Example:
        >>> nn.RNNCell(10, 20)(flambeau.ones(3, 10)).shape
        torch.Size([3, 20])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]
    nonlinearity: str

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True,
                 nonlinearity: str = "tanh", device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        input, (hx,), is_batched = self._checked(input, [hx])
        if self.nonlinearity == "tanh":
            result = flambeau.rnn_tanh_cell(input, hx, *self._weights)
        elif self.nonlinearity == "relu":
            result = flambeau.rnn_relu_cell(input, hx, *self._weights)
        else:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return result if is_batched else result.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`: (x, (h, c)) → (h', c').

    Example:
        >>> h, c = nn.LSTMCell(10, 20)(flambeau.ones(3, 10))
        >>> h.shape, c.shape
        (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx=None) -> tuple[Tensor, Tensor]:
        states: Any = (None, None) if hx is None else hx if isinstance(hx, list) else tuple(hx)
        input, states, is_batched = self._checked(input, states)
        if hx is not None and not is_batched:
            _, states = hx[1], states[:2]                       # there has to be a second one
        if is_batched and isinstance(hx, Tensor):
            states = hx                                         # which is no pair
        h, c = flambeau.lstm_cell(input, states, *self._weights)
        return (h, c) if is_batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a `GRU`.

    Example:
        >>> nn.GRUCell(10, 20)(flambeau.ones(3, 10)).shape
        torch.Size([3, 20])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        input, (hx,), is_batched = self._checked(input, [hx])
        result = flambeau.gru_cell(input, hx, *self._weights)
        return result if is_batched else result.squeeze(0)
