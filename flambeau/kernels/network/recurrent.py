"""LSTM, GRU and plain layers: a step from its gates' inputs, a layer over a sequence, gradients.

Gates stand side by side along the last axis: input, forget, cell, output for the LSTM; reset,
update, new for the GRU.
"""

import numpy as np

from flambeau.kernels.declaration import kernel, kernel_with_float32_results
from flambeau.kernels.pointwise.gated_units import sigmoid


@kernel_with_float32_results(2)
def lstm_cell(gates, c):
    """One step: h' = o * tanh(c'), c' = f * c + i * n, from `gates` (n, 4 h).

    Returns h', c' and the activated gates, which the gradient needs.
    """
    i, f, n, o = np.split(gates, 4, axis=-1)
    i, f, n, o = sigmoid(i), sigmoid(f), np.tanh(n), sigmoid(o)
    new = f * c + i * n
    return o * np.tanh(new), new, np.concatenate([i, f, n, o], axis=-1)


@kernel
def lstm_cell_backward(gh, gc, activated, c, new):
    """Gradients of `lstm_cell` in the gates' inputs and in c."""
    i, f, n, o = np.split(activated, 4, axis=-1)
    t = np.tanh(new)
    gc = gc + gh * o * (1 - t * t)
    g_gates = np.concatenate(
        [gc * n * i * (1 - i), gc * c * f * (1 - f), gc * i * (1 - n * n), gh * t * o * (1 - o)],
        axis=-1)
    return g_gates, gc * f


@kernel_with_float32_results(1)
def gru_cell(gi, gh, h):
    """One step: h' = (1 - z) * n + z * h with n = tanh(gi_n + r * gh_n).

    `gi` and `gh` (n, 3 h) are the input's and the state's share of the gates. Returns h' and
    r, z, n and gh_n side by side, which the gradient needs.
    """
    (ir, iz, i_n), (hr, hz, hn) = np.split(gi, 3, axis=-1), np.split(gh, 3, axis=-1)
    r, z = sigmoid(ir + hr), sigmoid(iz + hz)
    n = np.tanh(i_n + r * hn)
    return (h - n) * z + n, np.concatenate([r, z, n, hn], axis=-1)


@kernel
def gru_cell_backward(g, saved, h):
    """Gradients of `gru_cell` in both shares and in h."""
    r, z, n, hn = np.split(saved, 4, axis=-1)
    gn = g * (1 - z) * (1 - n * n)
    gz = g * (h - n) * z * (1 - z)
    gr = gn * hn * r * (1 - r)
    return np.concatenate([gr, gz, gn], -1), np.concatenate([gr, gz, gn * r], -1), g * z


@kernel_with_float32_results(2)
def lstm_steps(gates, h, c, w_hh, reverse=False):
    """All steps of an LSTM from the input's share of its gates (t, n, 4 k) and its state (n, k).

    Returns the outputs and the cells (t, n, k), and the activated gates.
    """
    y, saved = np.empty((*gates.shape[:2], h.shape[-1]), gates.dtype), np.empty_like(gates)
    cells = np.empty_like(y)
    for t in _steps(len(gates), reverse):
        h, c, saved[t] = lstm_cell.reference(gates[t] + h @ w_hh.T, c)
        y[t], cells[t] = h, c
    return y, cells, saved


@kernel
def lstm_steps_backward(gy, gh, gc, c, w_hh, cells, saved, reverse=False):
    """Gradients in all gates' inputs and first state, from the outputs' and the last state's."""
    g_gates = np.empty_like(saved)
    for t, before in _steps_back(len(saved), reverse):
        previous = c if before is None else cells[before]
        g_gates[t], gc = lstm_cell_backward.reference(gy[t] + gh, gc, saved[t], previous, cells[t])
        gh = g_gates[t] @ w_hh
    return g_gates, gh, gc


@kernel_with_float32_results(3, 4)
def lstm_layer(x, h, c, w_ih, w_hh, b_ih=None, b_hh=None, reverse=False):
    """An LSTM over the sequence `x` (t, n, i) from the state h, c (n, k).

    Returns the outputs (t, n, k), the last h and c, and, for the gradient, the activated gates and
    all cells.
    """
    y, cells, saved = lstm_steps(_project(x, w_ih, _sum_of(b_ih, b_hh)), h, c, w_hh, reverse)
    last = 0 if reverse else -1
    return ((y, y[last].copy(), cells[last].copy(), saved, cells) if len(x)
            else (y, h.copy(), c.copy(), saved, cells))


@kernel
def lstm_layer_backward(gy, gh, gc, x, h, c, w_ih, w_hh, y, saved, cells, reverse=False):
    """Gradients of `lstm_layer` in x, h, c, w_ih, w_hh and either bias."""
    g_gates, gh, gc = lstm_steps_backward(gy, gh, gc, c, w_hh, cells, saved, reverse)
    return _layer_grads(g_gates, g_gates, x, _states_before(y, h, reverse), w_ih, gh, gc)


@kernel_with_float32_results(1)
def gru_steps(shares, h, w_hh, b_hh=None, reverse=False):
    """All steps of a GRU from the input's shares (t, n, 3 k) and the state h (n, k).

    Returns the outputs, and what the gradient needs.
    """
    y = np.empty((*shares.shape[:2], h.shape[-1]), shares.dtype)
    saved = np.empty((*shares.shape[:2], 4 * h.shape[-1]), shares.dtype)
    for t in _steps(len(shares), reverse):
        own = h @ w_hh.T
        h, saved[t] = gru_cell.reference(shares[t], own if b_hh is None else own + b_hh, h)
        y[t] = h
    return y, saved


@kernel
def gru_steps_backward(gy, gh, h, w_hh, y, saved, reverse=False):
    """Gradients in both shares of all steps and in the first state."""
    gi = np.empty((*y.shape[:2], 3 * y.shape[2]), saved.dtype)
    gs = np.empty_like(gi)
    for t, before in _steps_back(len(y), reverse):
        previous = h if before is None else y[before]
        gi[t], gs[t], direct = gru_cell_backward.reference(gy[t] + gh, saved[t], previous)
        gh = direct + gs[t] @ w_hh
    return gi, gs, gh


@kernel_with_float32_results(2)
def gru_layer(x, h, w_ih, w_hh, b_ih=None, b_hh=None, reverse=False):
    """A GRU over the sequence `x` (t, n, i) from the state h (n, k).

    Returns the outputs, the last h, and what the gradient needs.
    """
    y, saved = gru_steps(_project(x, w_ih, b_ih), h, w_hh, b_hh, reverse)
    return y, (y[0 if reverse else -1] if len(x) else h).copy(), saved


@kernel
def gru_layer_backward(gy, gh, x, h, w_ih, w_hh, y, saved, reverse=False):
    """Gradients of `gru_layer` in x, h, w_ih, w_hh, b_ih and b_hh."""
    gi, gs, gh = gru_steps_backward(gy, gh, h, w_hh, y, saved, reverse)
    gx, gh, g_ih, g_hh, g_bi = _layer_grads(gi, gs, x, _states_before(y, h, reverse), w_ih, gh)
    return gx, gh, g_ih, g_hh, g_bi, gs.sum(axis=(0, 1))


@kernel
def rnn_steps(gates, h, w_hh, relu=False, reverse=False):
    """All steps of a plain layer from the input's share (t, n, k) and the state h (n, k)."""
    y = np.empty_like(gates)
    for t in _steps(len(gates), reverse):
        z = gates[t] + h @ w_hh.T
        h = y[t] = np.maximum(z, 0) if relu else np.tanh(z)
    return y


@kernel
def rnn_steps_backward(gy, gh, w_hh, y, relu=False, reverse=False):
    """Gradients in all gates' inputs and in the first state."""
    g_gates = np.empty_like(y)
    for t, _ in _steps_back(len(y), reverse):
        g_gates[t] = (gy[t] + gh) * ((y[t] > 0) if relu else 1 - y[t] * y[t])
        gh = g_gates[t] @ w_hh
    return g_gates, gh


@kernel
def rnn_layer(x, h, w_ih, w_hh, b_ih=None, b_hh=None, relu=False, reverse=False):
    """A plain layer over the sequence `x` (t, n, i) from the state h (n, k): the outputs."""
    return rnn_steps(_project(x, w_ih, _sum_of(b_ih, b_hh)), h, w_hh, relu, reverse)


@kernel
def rnn_layer_backward(gy, x, h, w_ih, w_hh, y, relu=False, reverse=False):
    """Gradients of `rnn_layer` in x, h, w_ih, w_hh and either bias."""
    g_gates, gh = rnn_steps_backward(gy, np.zeros_like(h), w_hh, y, relu, reverse)
    return _layer_grads(g_gates, g_gates, x, _states_before(y, h, reverse), w_ih, gh)


def _sum_of(a, b):
    return a if b is None else b if a is None else a + b


def _project(x, w, bias):
    """x @ w.T + bias for all steps at once."""
    result = (x.reshape(-1, x.shape[-1]) @ w.T).reshape(*x.shape[:2], len(w))
    return result if bias is None else result + bias


def _steps(length, reverse):
    return range(length - 1, -1, -1) if reverse else range(length)


def _steps_back(length, reverse):
    """Steps from last to first, each with the one before it."""
    order = list(_steps(length, reverse))
    return zip(order[::-1], [*order[-2::-1], None])


def _states_before(y, h, reverse):
    """The state that each step started from."""
    return np.concatenate([y[1:], h[None]]) if reverse else np.concatenate([h[None], y[:-1]])


def _layer_grads(gi, gs, x, states, w_ih, gh, *more):
    flat_i, flat_s = gi.reshape(-1, gi.shape[-1]), gs.reshape(-1, gs.shape[-1])
    gx = (flat_i @ w_ih).reshape(x.shape)
    g_ih = flat_i.T @ x.reshape(-1, x.shape[-1])
    g_hh = flat_s.T @ states.reshape(-1, states.shape[-1])
    return gx, gh, *more, g_ih, g_hh, flat_i.sum(axis=0)
