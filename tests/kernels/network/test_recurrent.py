import numpy as np
import pytest

from flambeau.kernels.network import recurrent


def check(derivative, forward, found, inputs, grads):
    for i, gradient in enumerate(found):

        def value(x, i=i):
            results = forward(*inputs[:i], x, *inputs[i + 1 :])
            return sum(np.sum(g * y) for g, y in zip(grads, results))

        np.testing.assert_allclose(gradient, derivative(value, inputs[i]), rtol=1e-5, atol=1e-7)


def test_lstm_cell(normal, derivative):
    inputs, grads = (normal((3, 8)), normal((3, 2))), (normal((3, 2)), normal((3, 2)))
    _, new, activated = recurrent.lstm_cell(*inputs)
    found = recurrent.lstm_cell_backward(*grads, activated, inputs[1], new)
    check(derivative, recurrent.lstm_cell, found, inputs, grads)


def test_gru_cell(normal, derivative):
    inputs, g = (normal((3, 6)), normal((3, 6)), normal((3, 2))), normal((3, 2))
    _, saved = recurrent.gru_cell(*inputs)
    found = recurrent.gru_cell_backward(g, saved, inputs[2])
    check(derivative, recurrent.gru_cell, found, inputs, (g,))


@pytest.mark.parametrize("reverse", [False, True])
def test_lstm_layer(normal, derivative, reverse):
    x, h, c = normal((4, 2, 3)), normal((2, 2)), normal((2, 2))
    inputs = x, h, c, normal((8, 3)), normal((8, 2)), normal(8)
    grads = normal((4, 2, 2)), normal((2, 2)), normal((2, 2))

    def forward(*inputs):
        return recurrent.lstm_layer(*inputs, None, reverse)[:3]

    y, _, _, saved, cells = recurrent.lstm_layer(*inputs, None, reverse)
    found = recurrent.lstm_layer_backward(*grads, *inputs[:5], y, saved, cells, reverse)
    check(derivative, forward, found, inputs, grads)


@pytest.mark.parametrize("reverse", [False, True])
def test_gru_layer(normal, derivative, reverse):
    x, h = normal((4, 2, 3)), normal((2, 2))
    inputs = x, h, normal((6, 3)), normal((6, 2)), normal(6), normal(6)
    grads = normal((4, 2, 2)), normal((2, 2))

    def forward(*inputs):
        return recurrent.gru_layer(*inputs, reverse)[:2]

    y, _, saved = recurrent.gru_layer(*inputs, reverse)
    found = recurrent.gru_layer_backward(*grads, *inputs[:4], y, saved, reverse)
    check(derivative, forward, found, inputs, grads)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_rnn_layer(normal, derivative, relu, reverse):
    inputs = normal((4, 2, 3)), normal((2, 2)), normal((2, 3)), normal((2, 2)), normal(2)
    g = normal((4, 2, 2))

    def forward(*inputs):
        return (recurrent.rnn_layer(*inputs, None, relu, reverse),)

    found = recurrent.rnn_layer_backward(g, *inputs[:4], *forward(*inputs), relu, reverse)
    check(derivative, forward, found, inputs, (g,))


def test_saturated_gates():
    """Large inputs give exactly 0 and 1, not NaN."""
    gates = np.array([[1e4, -1e4, 1e4, 1e4]], np.float32)
    for version in (recurrent.lstm_cell, recurrent.lstm_cell.reference):
        h, c, activated = version(gates, np.full((1, 1), 5, np.float32))
        assert c == 1 and activated.tolist() == [[1, 0, 1, 1]]
        np.testing.assert_allclose(h, np.tanh(1), rtol=1e-6)
