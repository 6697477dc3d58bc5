"""`LSTM` whose gates are modules, so that each result can be observed and quantised."""
from __future__ import annotations

import warnings
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.ao.nn.float_functional import FloatFunctional

_GATES = ("input", "forget", "cell", "output")


def _zeros(sizes: Any, like: Tensor, qparams: tuple[float, int] = (1.0, 0),
           dtype: Any = None) -> Tensor:
    """A state to begin with: quantised if the input is."""
    zeros = flambeau.zeros(sizes)
    if not like.is_quantized:
        return zeros
    return flambeau.quantize_per_tensor(zeros, *qparams, dtype or like.dtype)


class LSTMCell(nn.Module):
    """One step of an LSTM. With `split_gates` each gate has products of its own."""

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None,
                 dtype: Any = None, *, split_gates: bool = False):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_dim, hidden_dim, bias
        self.split_gates = split_gates
        self.igates = self._products(input_dim, device, dtype)
        self.hgates = self._products(hidden_dim, device, dtype)
        self.gates: Any = nn.ModuleDict({g: FloatFunctional() for g in _GATES}) if split_gates \
            else FloatFunctional()
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        for name in ("fgate_cx", "igate_cgate", "fgate_cx_igate_cgate", "ogate_cy"):
            setattr(self, name, FloatFunctional())
        self.initial_hidden_state_qparams: tuple[float, int] = (1.0, 0)
        self.initial_cell_state_qparams: tuple[float, int] = (1.0, 0)
        self.hidden_state_dtype = self.cell_state_dtype = flambeau.quint8

    def _products(self, size: int, device: Any, dtype: Any) -> Any:
        def linear(outputs: int) -> nn.Module:
            return nn.Linear(size, outputs, bias=self.bias, device=device, dtype=dtype)
        if self.split_gates:
            return nn.ModuleDict({g: linear(self.hidden_size) for g in _GATES})
        return linear(4 * self.hidden_size)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Tensor]:
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x)
        hx, cx = hidden
        each: Any
        if self.split_gates:
            each = [self.gates[g].add(self.igates[g](x), self.hgates[g](hx)) for g in _GATES]
        else:
            each = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        i, f, g, o = (getattr(self, f"{name}_gate")(v) for name, v in zip(_GATES, each))
        cy = self.fgate_cx_igate_cgate.add(self.fgate_cx.mul(f, cx), self.igate_cgate.mul(i, g))
        return self.ogate_cy.mul(o, flambeau.tanh(cy)), cy

    def initialize_hidden(self, batch_size: int, is_quantized: Any = False
                          ) -> tuple[Tensor, Tensor]:
        """States of zeros; quantised, if the input (or the word that it is) says so."""
        if is_quantized is True:
            is_quantized = flambeau.quantize_per_tensor(flambeau.zeros(1), 1.0, 0, flambeau.quint8)
        elif is_quantized is False:
            is_quantized = flambeau.zeros(1)
        sizes = (batch_size, self.hidden_size)
        return (_zeros(sizes, is_quantized, self.initial_hidden_state_qparams,
                       self.hidden_state_dtype),
                _zeros(sizes, is_quantized, self.initial_cell_state_qparams, self.cell_state_dtype))

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(cls, wi: Tensor, wh: Tensor, bi: Any = None, bh: Any = None,
                    split_gates: bool = False) -> LSTMCell:
        """A cell with these weights and biases."""
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        cell = cls(wi.shape[1], wh.shape[1], bias=bi is not None, split_gates=split_gates)
        for products, w, b in ((cell.igates, wi, bi), (cell.hgates, wh, bh)):
            for name, value in (("weight", w), ("bias", b)):
                if value is None:
                    continue
                parts = value.chunk(4, 0) if split_gates else [value]
                holders = products.values() if split_gates else [products]
                for holder, part in zip(holders, parts):
                    setattr(holder, name, nn.Parameter(part))
        return cell

    @classmethod
    def from_float(cls, other: Any, use_precomputed_fake_quant: bool = False,
                   split_gates: bool = False) -> LSTMCell:
        """A cell with the weights and the qconfig of a float one."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        cell = cls.from_params(other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh,
                               split_gates)
        for module in (cell, *cell.igates.modules(), *cell.hgates.modules()):
            module.qconfig = other.qconfig
        return cell


class _LSTMSingleLayer(nn.Module):
    """One direction of a layer."""

    def __init__(self, cell: LSTMCell):
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, hidden: Any = None) -> Any:
        outputs = []
        for step in x:
            hidden = self.cell(step, hidden)
            outputs.append(hidden[0])
        return flambeau.stack(outputs, 0), hidden


class _LSTMLayer(nn.Module):
    """One layer, in one direction or both; the state of both has a dimension more."""

    def __init__(self, *cells: LSTMCell):
        super().__init__()
        self.bidirectional = len(cells) == 2
        for name, cell in zip(("layer_fw", "layer_bw"), cells):
            setattr(self, name, _LSTMSingleLayer(cell))

    def forward(self, x: Tensor, hidden: Any = None) -> Any:
        if not self.bidirectional:
            return self.layer_fw(x, hidden)
        state = [None, None] if hidden is None else list(zip(*hidden))
        y, last = self.layer_fw(x, state[0])
        back, last_back = self.layer_bw(x.flip(0), state[1])
        return (flambeau.cat([y, back.flip(0)], -1),
                tuple(flambeau.stack(list(pair)) for pair in zip(last, last_back)))


class LSTM(nn.Module):
    """`nn.LSTM`, made of a module for every step of the computation.

    >>> from flambeau.ao.nn import quantizable
    >>> y, (h, c) = quantizable.LSTM(3, 2)(flambeau.ones(4, 1, 3))
    >>> y.shape, h.shape
    (torch.Size([4, 1, 2]), torch.Size([1, 1, 2]))
    """

    _FLOAT_MODULE: Any = nn.LSTM

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 device: Any = None, dtype: Any = None, *, split_gates: bool = False):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.training = bidirectional, False
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the "
                             "probability of an element being zeroed")
        if dropout > 0:
            warnings.warn("dropout option for quantizable LSTM is ignored. If you are training, "
                          "please, use nn.LSTM version followed by `prepare` step.", stacklevel=2)
        directions = 2 if bidirectional else 1
        sizes = [input_size] + [directions * hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(
            _LSTMLayer(*(LSTMCell(size, hidden_size, bias, device, dtype, split_gates=split_gates)
                         for _ in range(directions))) for size in sizes)

    def forward(self, x: Tensor, hidden: Any = None) -> Any:
        if self.batch_first:
            x = x.transpose(0, 1)
        directions = 2 if self.bidirectional else 1
        sizes = (self.num_layers, directions, x.size(1), self.hidden_size)
        if hidden is None:
            hidden = (_zeros(sizes, x),) * 2
        states = zip(*([part.squeeze(0) for part in state.reshape(sizes)] for state in hidden)) \
            if isinstance(hidden[0], Tensor) else hidden
        finals = []
        for layer, state in zip(self.layers, states):
            x, last = layer(x, state)
            finals.append(last)
        h, c = (flambeau.stack(list(part)) for part in zip(*finals))
        final = tuple(part.reshape(-1, *part.shape[-2:]) for part in (h, c))
        return (x.transpose(0, 1) if self.batch_first else x), final

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: Any, qconfig: Any = None, split_gates: bool = False) -> Any:
        """The weights of a float LSTM, prepared with its qconfig."""
        from flambeau.ao.quantization.quantize import prepare, prepare_qat
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("other must have qconfig or qconfig must be provided")
        observed: Any = cls(other.input_size, other.hidden_size, other.num_layers, other.bias,
                            other.batch_first, other.dropout, other.bidirectional,
                            split_gates=split_gates)
        observed.qconfig = getattr(other, "qconfig", qconfig)
        for n in range(other.num_layers):
            cells = []
            for way in ("", "_reverse")[:2 if other.bidirectional else 1]:
                given = [getattr(other, f"{kind}_l{n}{way}", None)
                         for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
                cells.append(LSTMCell.from_params(given[0], given[1], given[2], given[3],
                                                  split_gates))
            observed.layers[n] = _LSTMLayer(*cells)
            observed.layers[n].qconfig = observed.qconfig
        observed.train(other.training)
        return (prepare_qat if other.training else prepare)(observed, inplace=True)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Not offered: `nn.quantized.LSTM` is what an observed module becomes."""
        raise NotImplementedError("It looks like you are trying to convert a non-quantizable LSTM. "
                                  "Please, see the examples on quantizable LSTMs.")
