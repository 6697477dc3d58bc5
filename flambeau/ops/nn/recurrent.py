"""Recurrent networks: LSTM, GRU and plain ones, cell by cell, and stacks of layers over sequences.

Gates stand side by side along the last dimension: input, forget, cell, output for the LSTM; reset,
update, new for the GRU. A layer over a whole sequence is one fused op; sequences of different
lengths, and projected states, are stepped through.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import flambeau
from flambeau.core.autograd.formulas import parameters
from flambeau.core.autograd.graph import Node, next_order
from flambeau.core.modes import shows_ops
from flambeau.core.promotion import type_name
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor, gradient_edge
from flambeau.dispatch.declaration import op
from flambeau.kernels.moving import views
from flambeau.kernels.network import recurrent as kernels
from flambeau.ops.nn.affine import linear
from flambeau.ops.node_names import rename, stand_for

# ---- one step ------------------------------------------------------------------------------------


def _to(name: str, x: Tensor, *others: Tensor) -> Tensor:
    """What a method gives, if nobody needs `x` any more: where modes see the steps they write in
    place, as PyTorch's do."""
    return getattr(x, f"{name}_" if shows_ops() else name)(*others)


def _value(gates: Any) -> Tensor:
    """The input's share of the gates: a cell computes it when PyTorch's does, a layer before."""
    return gates() if callable(gates) else gates


def _lstm_step(gates: Any, state: Any, w_hh: Tensor, b_hh: Any, w_hr: Any = None,
               product: Any = linear) -> Any:
    """The next (h, c), from the input's share of the gates, or what gives it."""
    h, c = state
    own = product(h, w_hh, b_hh)
    own = _to("add", own, _value(gates))
    i, f, n, o = flambeau.unsafe_chunk(own, 4, 1)
    i, f, n, o = _to("sigmoid", i), _to("sigmoid", f), _to("tanh", n), _to("sigmoid", o)
    c = _to("add", f * c, i * n)
    h = o * c.tanh()
    return (h if w_hr is None else product(h, w_hr)), c


def _gru_step(gates: Any, state: Any, w_hh: Tensor, b_hh: Any, product: Any = linear) -> Any:
    (h,) = state
    ir, iz, i_n = flambeau.unsafe_chunk(_value(gates), 3, 1)
    hr, hz, hn = flambeau.unsafe_chunk(product(h, w_hh, b_hh), 3, 1)
    r, z = _to("sigmoid", _to("add", hr, ir)), _to("sigmoid", _to("add", hz, iz))
    n = _to("tanh", i_n + _to("mul", hn, r))
    return (_to("add", _to("mul", h - n, z), n),)


def _tanh_step(gates: Any, state: Any, w_hh: Tensor, b_hh: Any, product: Any = linear) -> Any:
    own = product(state[0], w_hh, b_hh)
    return (_to("add", own, _value(gates)).tanh(),)


def _relu_step(gates: Any, state: Any, w_hh: Tensor, b_hh: Any, product: Any = linear) -> Any:
    own = product(state[0], w_hh, b_hh)
    return (_to("add", own, _value(gates)).relu(),)


def _check_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, gates: int,
                state: int = 0) -> None:
    x, h, wi, wh = (t._array.shape for t in (input, hx, w_ih, w_hh))
    for shape in (wi, wh):
        wrap_dim(1, len(shape))
    if gates == 1:
        _check_weights(wi, wh, gates)
    if x[-1] != wi[-1]:
        raise RuntimeError(f"input has inconsistent input_size: got {x[-1]} expected {wi[-1]}")
    if x[0] != h[0]:
        raise RuntimeError(f"Input batch size {x[0]} doesn't match hidden{state} batch size {h[0]}")
    if h[wrap_dim(1, len(h))] != wh[-1]:
        raise RuntimeError(f"hidden{state} has inconsistent hidden_size: got {h[1]}, expected "
                           f"{wh[-1]}")
    _check_weights(wi, wh, gates)


def _check_weights(wi: tuple[int, ...], wh: tuple[int, ...], gates: int) -> None:
    for name, shape in (("ih", wi), ("hh", wh)):
        if shape[0] != gates * wh[1]:
            raise RuntimeError(f"weight_{name} first dim must be {gates} * hidden_size = "
                               f"{gates * wh[1]}, but got {shape[0]}")


_WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


@op(f"lstm_cell(Tensor input, Tensor[] hx, {_WEIGHTS}) -> (Tensor, Tensor)", out=False,
    method=False, autocast="opened")
def lstm_cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None,
              b_hh: Tensor | None) -> tuple[Tensor, Tensor]:
    """One step: h' = o · tanh(c'), c' = f · c + i · n; i, f and o are sigmoids, n a tanh, of
    W x + b + U h + b'. Hochreiter and Schmidhuber, 1997."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = hx
    _check_cell(input, h, w_ih, w_hh, 4)
    _check_cell(input, c, w_ih, w_hh, 4, 1)
    return _lstm_step(partial(linear, input, w_ih, b_ih), (h, c), w_hh, b_hh)


def _single_state_cell(name: str, step: Any, gates: int, doc: str) -> Any:
    def cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None,
             b_hh: Tensor | None) -> Tensor:
        _check_cell(input, hx, w_ih, w_hh, gates)
        return step(partial(linear, input, w_ih, b_ih), (hx,), w_hh, b_hh)[0]

    return op(f"{name}(Tensor input, Tensor hx, {_WEIGHTS}) -> Tensor", body=cell, out=False,
              method=False, autocast="opened", doc=doc)


gru_cell = _single_state_cell("gru_cell", _gru_step, 3, """One step: h' = (1 - z) · n + z · h with
    r, z = σ(W x + b + U h + b') and n = tanh(W x + b + r · (U h + b')). Cho et al., 2014.""")
rnn_tanh_cell = _single_state_cell("rnn_tanh_cell", _tanh_step, 1,
                                   "One step: h' = tanh(W x + b + U h + b').")
rnn_relu_cell = _single_state_cell("rnn_relu_cell", _relu_step, 1,
                                   "One step: h' = max(0, W x + b + U h + b').")

# ---- one layer over sequences of one length ------------------------------------------------------


def _run_steps(step: Callable[..., Any], x: Tensor, state: Any, weights: Any, reverse: bool,
               product: Any = linear) -> tuple[Tensor, Any]:
    """Outputs (t, n, k) and the last state; `weights` are w_ih, w_hh, b_ih, b_hh, maybe more."""
    w_ih, w_hh, b_ih, b_hh, *more = weights
    gates = product(x, w_ih, b_ih).unbind(0)
    order = range(len(gates))
    outputs = []
    for t in reversed(order) if reverse else order:
        state = step(gates[t], state, w_hh, b_hh, *more, product=product)
        outputs.append(state[0])
    return flambeau.stack(outputs[::-1] if reverse else outputs), state


def _as_sequence(gradient: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The gradient by one sequence, which lies in memory as the transpose of a matrix if x does:
    that of a product with the weights does so."""
    if x.shape[1] != 1 or x.flags.c_contiguous or not x[:, 0].flags.f_contiguous:
        return gradient
    return views.permute_memory_like(x, gradient)


def _at_conjugates(transposed: Callable[..., Any]) -> Any:
    """The gradient, Jᴴ grad, of a layer whose kernel computes Jᵀ grad. Sigmoids and tanh have
    power series with real coefficients, so Jᴴ is Jᵀ where all values are conjugate."""
    def backward(grad: Any, result: np.ndarray, *rest: Any) -> Any:
        values: Any = rest
        if result.dtype.kind == "c":
            result, *values = [v.conj() if isinstance(v, np.ndarray) else v
                               for v in (result, *rest)]
        by_input, *others = transposed(grad, result, *values)
        return _as_sequence(by_input, rest[0]), *others
    backward.names = parameters(transposed)                         # type: ignore[attr-defined]
    return backward


def _lstm_kernel(x: np.ndarray, w_ih: np.ndarray, w_hh: np.ndarray, b_ih: Any, b_hh: Any,
                 h: np.ndarray, c: np.ndarray, reverse: bool) -> Any:
    y, _, last, saved, cells = kernels.lstm_layer(x, h, c, w_ih, w_hh, b_ih, b_hh, reverse)
    return y, y[0 if reverse else -1].copy(), last, saved, cells


@_at_conjugates
def _lstm_backward(grad: Any, result: np.ndarray, input: np.ndarray, h: np.ndarray,
                   c: np.ndarray, w_ih: np.ndarray, w_hh: np.ndarray, saved: np.ndarray,
                   cells: np.ndarray, reverse: bool) -> Any:
    grads = [np.zeros_like(of) if g is None else g for g, of in zip(grad, (result, h, c))]
    gx, gh, gc, gi, gw, gb = kernels.lstm_layer_backward(
        *grads, input, h, c, w_ih, w_hh, result, saved, cells, reverse)
    return gx, gi, gw, gb, gb, gh, gc


def _lstm_parts(input: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, h: Tensor,
                c: Tensor, reverse: bool) -> tuple[Tensor, ...]:
    y, (h, c) = _run_steps(_lstm_step, input, (h, c), (w_ih, w_hh, b_ih, b_hh), reverse)
    return y, h, c, flambeau.empty(0), flambeau.empty(0)


_LAYER: dict[str, Any] = {"function": False, "method": False, "out": False}
_lstm_layer = op(
    "_lstm_layer(Tensor input, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor h, "
    "Tensor c, bool reverse) -> (Tensor result, Tensor hy, Tensor cy, Tensor saved, Tensor cells)",
    kernel=_lstm_kernel, backward=_lstm_backward, parts=_lstm_parts, returns=tuple,
    differentiable=(True, True, True, False, False), node="MkldnnRnnLayerBackward0", **_LAYER,
    doc="The outputs (t, n, k), the last state and the last cell.")
_STATES = "Tensor input, Tensor h, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh"


def _gru_kernel(x: np.ndarray, h: np.ndarray, w_ih: np.ndarray, w_hh: np.ndarray, b_ih: Any,
                b_hh: Any, reverse: bool) -> Any:
    y, _, saved = kernels.gru_layer(x, h, w_ih, w_hh, b_ih, b_hh, reverse)
    return y, saved


@_at_conjugates
def _gru_backward(grad: np.ndarray, result: np.ndarray, input: np.ndarray, h: np.ndarray,
                  w_ih: np.ndarray, w_hh: np.ndarray, saved: np.ndarray, reverse: bool) -> Any:
    return kernels.gru_layer_backward(grad, np.zeros_like(h), input, h, w_ih, w_hh, result, saved,
                                      reverse)


_gru_layer = op(
    f"_gru_layer({_STATES}, bool reverse) -> (Tensor result, Tensor saved)", kernel=_gru_kernel,
    backward=_gru_backward, parts=lambda input, h, *rest: (
        _run_steps(_gru_step, input, (h,), rest[:-1], rest[-1])[0], None),
    implicit=True, returns=tuple, differentiable=(True, False), node="StackBackward0",
    autocast="opened", **_LAYER)


@_at_conjugates
def _rnn_backward(grad: np.ndarray, result: np.ndarray, input: np.ndarray, h: np.ndarray,
                  w_ih: np.ndarray, w_hh: np.ndarray, relu: bool, reverse: bool) -> Any:
    *others, gb = kernels.rnn_layer_backward(grad, input, h, w_ih, w_hh, result, relu, reverse)
    return *others, gb, gb


_rnn_layer = op(
    f"_rnn_layer({_STATES}, bool relu, bool reverse) -> Tensor", kernel=kernels.rnn_layer,
    backward=_rnn_backward, implicit=True, node="StackBackward0", **_LAYER,
    parts=lambda input, h, *rest: _run_steps(
        _relu_step if rest[-2] else _tanh_step, input, (h,), rest[:-2], rest[-1])[0])


def _last_state(y: Tensor, reverse: bool) -> Tensor:
    """The last state of what is seen as a stack of states."""
    at = 0 if reverse else -1
    node = gradient_edge(y)
    return y[at] if not isinstance(node, Node) else stand_for(
        y[at], lambda: node.seen(0)[0].next_functions[at])


def _run_lstm(x: Tensor, state: Any, weights: Any, reverse: bool) -> tuple[Tensor, Any]:
    if len(weights) > 4 or not x._array.shape[0]:
        return _run_steps(_lstm_step, x, state, weights, reverse)
    y, h, c, *_ = _lstm_layer(x, *weights, *state, reverse)
    return y, (h, c)


def _run_gru(x: Tensor, state: Any, weights: Any, reverse: bool) -> tuple[Tensor, Any]:
    if shows_ops():
        return _run_steps(_gru_step, x, state, weights, reverse)
    y, _ = _gru_layer(x, *state, *weights, reverse)
    return y, (_last_state(y, reverse),)


def _run_plain(relu: bool) -> Callable[..., Any]:
    def run(x: Tensor, state: Any, weights: Any, reverse: bool) -> tuple[Tensor, Any]:
        if shows_ops():
            return _run_steps(_relu_step if relu else _tanh_step, x, state, weights, reverse)
        y = _rnn_layer(x, *state, *weights, relu, reverse)
        return y, (_last_state(y, reverse),)
    return run


class Recurrence(NamedTuple):
    """A kind of recurrent network: one step, a layer over all steps, and how many states it has."""
    step: Callable[..., Any]
    layer: Callable[..., Any]
    states: int = 1


LSTM = Recurrence(_lstm_step, _run_lstm, 2)
GRU = Recurrence(_gru_step, _run_gru)
RNN_TANH = Recurrence(_tanh_step, _run_plain(False))
RNN_RELU = Recurrence(_relu_step, _run_plain(True))


def recurrence(mode: str) -> Recurrence:
    """The kind that the modules' `mode` names: "LSTM", "rnn_tanh"."""
    return globals()[mode.upper()]


# ---- one layer over sequences of different lengths -----------------------------------------------


def _run_packed(step: Callable[..., Any], data: Tensor, sizes: list[int], state: Any, weights: Any,
                reverse: bool, product: Any = linear) -> tuple[Tensor, Any]:
    """As `_run_steps`, where step t has only the first sizes[t] sequences, the longest first."""
    w_ih, w_hh, b_ih, b_hh, *more = weights
    gates = product(data, w_ih, b_ih)
    starts = itertools.accumulate(sizes, initial=0)
    parts = [gates.narrow(0, start, size) for start, size in zip(starts, sizes)]
    outputs: list[Any] = [None] * len(sizes)
    if reverse:
        now = [s[:sizes[-1]] for s in state]
        for t in range(len(sizes) - 1, -1, -1):
            have = now[0]._array.shape[0]
            if sizes[t] > have:
                now = [flambeau.cat([n, s[have:sizes[t]]]) for n, s in zip(now, state)]
            now = list(step(parts[t], tuple(now), w_hh, b_hh, *more, product=product))
            outputs[t] = now[0]
        return flambeau.cat(outputs), tuple(now)
    now, ended = list(state), []
    for t, size in enumerate(sizes):
        have = now[0]._array.shape[0]
        if size < have:
            ended.append([s[size:] for s in now])
            now = [s[:size] for s in now]
        now = list(step(parts[t], tuple(now), w_hh, b_hh, *more, product=product))
        outputs[t] = now[0]
    final = [flambeau.cat([now[i], *[e[i] for e in reversed(ended)]]) for i in range(len(now))]
    return flambeau.cat(outputs), tuple(final)


# ---- stacks of layers ----------------------------------------------------------------------------


def _weights_of(params: Any, has_biases: bool, slots: int) -> list[tuple[Any, ...]]:
    """The parameters of each layer and direction: w_ih, w_hh, b_ih, b_hh, maybe a projection."""
    each = len(params) // slots if slots else 0
    groups = []
    for i in range(slots):
        own = tuple(params[i * each:(i + 1) * each])
        groups.append(own if has_biases else (*own[:2], None, None, *own[2:]))
    return groups


def stacked(kind: Recurrence, x: Tensor, state: Any, params: Any, has_biases: bool, layers: int,
            dropout: float, train: bool, bidirectional: bool, sizes: Any = None,
            product: Any = linear) -> Any:
    """Layer on layer; `state` holds the first h (and c) of all, (layers · directions, n, k).

    `product` multiplies with the weights, which need not be tensors if it knows them."""
    for what, others in (("hidden", state), ("parameter", params)) if product is linear else ():
        for other in others:
            if other._device is not x._device and other._device != x._device:
                raise RuntimeError(f"Input and {what} tensors are not at the same device, found "
                                   f"input tensor at {x._device} and {what} tensor at "
                                   f"{other._device}")
    for s in state if product is linear else ():
        if s._array.dtype != params[0]._array.dtype:
            raise RuntimeError("mat1 and mat2 must have the same dtype, but got "
                               f"{type_name(s.dtype)} and {type_name(params[0].dtype)}")
    directions = 2 if bidirectional else 1
    groups = _weights_of(params, has_biases, layers * directions)
    step, run, states = kind
    if product is not linear:
        run = partial(_run_steps, step, product=product)
    finals: list[Any] = []
    parts = () if states == 2 else [s.unbind(0) for s in state]
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            slot = layer * directions + direction
            first = tuple([s[slot] for s in state] if states == 2 else [p[slot] for p in parts])
            if sizes is None:
                y, last = run(x, first, groups[slot], direction == 1)
            else:
                y, last = _run_packed(step, x, sizes, first, groups[slot], direction == 1,
                                      product)
            outputs.append(y)
            finals.append(last)
        x = outputs[0] if directions == 1 else flambeau.cat(outputs, -1)
        if dropout and train and layer < layers - 1:
            x = flambeau.dropout(x, dropout, True)
    return x, [flambeau.stack(list(column)) for column in zip(*finals)]


def _in_one_go(input: Tensor, params: Any, layers: int, bidirectional: bool) -> bool:
    """Does PyTorch hand an LSTM's layers to a library, which wants sequences by rows?"""
    return input._array.dtype == np.float32 and len(params) <= 4 * layers * (1 + bidirectional)


def _declare_network(name: str, kind: Recurrence, doc: str, autocast: str = "lower") -> Any:
    states = kind.states
    first = "Tensor[] hx" if states == 2 else "Tensor hx"
    rest = ("Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
            "bool bidirectional")
    results = "-> (Tensor, Tensor, Tensor)" if states == 2 else "-> (Tensor, Tensor)"

    def call(input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
             train: bool, bidirectional: bool, batch_first: Any, data: Any, batch_sizes: Any
             ) -> Any:
        """A padded batch, or a packed one: `data` with `batch_sizes`."""
        state = hx if states == 2 else (hx,)
        how = params, has_biases, num_layers, dropout, train, bidirectional
        if data is not None:
            y, last = stacked(kind, data, state, *how, batch_sizes.tolist())
            return y, *last
        x = input.transpose(0, 1) if batch_first else input
        if states == 2 and _in_one_go(input, params, num_layers, bidirectional):
            x = x.contiguous()
        if not x._array.shape[0]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        y, last = stacked(kind, x, state, *how)
        if batch_first:
            since = next_order()
            y = y.transpose(0, 1)
            if states == 1:
                rename(y, "TransposeBackward1", since)
        return y, *last

    return op(f"{name}.input(Tensor input, {first}, {rest}, bool batch_first) {results}",
              f"{name}.data(Tensor data, Tensor batch_sizes, {first}, {rest}) {results}", body=call,
              out=False, method=False, autocast=autocast, doc=doc)


lstm = _declare_network("lstm", LSTM,
                        """A stack of LSTM layers: `lstm(input, (h, c), params, has_biases,
    num_layers, dropout, train, bidirectional, batch_first)` gives the outputs and the last h and c.

    `params` lists w_ih, w_hh, b_ih, b_hh (and a projection of h) of each layer and direction. With
    `(data, batch_sizes, (h, c), ...)` the sequences are packed, the longest first.""")
gru = _declare_network("gru", GRU,
                       "A stack of GRU layers; the arguments are those of `lstm`, with one "
                       "state h.", autocast="")
rnn_tanh = _declare_network("rnn_tanh", RNN_TANH,
                            "A stack of tanh layers; the arguments are those of `gru`.")
rnn_relu = _declare_network("rnn_relu", RNN_RELU,
                            "A stack of relu layers; the arguments are those of `gru`.")
