"""Layers that `flambeau/ops/nn/recurrent.py` computes."""
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau as torch

cases = Cases()


def _recurrent(mode, gates, options):
    @cases(f"{mode}{''.join('_' + o for o in options)}")
    def _(torch, make):
        biases, two, both = "bias" in options, "two" in options, "both" in options
        directions, layers = 1 + both, 1 + two
        proj = 2 if "proj" in options else 0
        out = proj or 3
        params = []
        for layer in range(layers):
            for _ in range(directions):
                params += [make(gates * 3, 2 if layer == 0 else out * directions),
                           make(gates * 3, out)]
                if biases:
                    params += [make(gates * 3), make(gates * 3)]
                if proj:
                    params.append(make(proj, 3))
        n = layers * directions
        h = make(n, 2, out)
        state = (h, make(n, 2, 3)) if mode == "lstm" else h
        if "packed" in options:
            found = getattr(torch, mode)(make(6, 2), torch.tensor([2, 2, 1, 1]), state, params,
                                         biases, layers, 0.0, False, both)
        else:
            found = getattr(torch, mode)(make(4, 2, 2), state, params, biases, layers, 0.0, False,
                                         both, "first" in options)
        return torch.cat([f.flatten() for f in found])


for _mode, _gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
    _recurrent(_mode, _gates, ("bias",))
    _recurrent(_mode, _gates, ("two", "both"))
    _recurrent(_mode, _gates, ("bias", "packed", "both"))
_recurrent("lstm", 4, ("bias", "proj"))


@cases("lstm_first")
def _(torch, make):
    state = (make(1, 4, 3), make(1, 4, 3))
    found = torch.lstm(make(4, 2, 2), state, [make(12, 2), make(12, 3)], False, 1, 0.0, False,
                       False, True)
    return torch.cat([f.flatten() for f in found])


for _mode, _gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
    @cases(f"{_mode}_cell")
    def _(torch, make, mode=_mode, gates=_gates):
        h = (make(2, 3), make(2, 3)) if mode == "lstm" else make(2, 3)
        found = getattr(torch, f"{mode}_cell")(
            make(2, 2), h, make(gates * 3, 2), make(gates * 3, 3), make(gates * 3), make(gates * 3))
        return torch.cat(found) if mode == "lstm" else found


class TestLayers(LayerTests):
    cases = cases


@pytest.mark.filterwarnings("ignore:Complex modules")
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_gradients_of_complex_layers(name):
    torch.manual_seed(0)
    layer = getattr(torch.nn, name)(2, 2, bidirectional=True).to(torch.complex128)
    names = [n for n, _ in layer.named_parameters()]

    def run(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,))[0]

    inputs = [torch.randn(3, 1, 2, dtype=torch.complex128), *layer.parameters()]
    assert torch.autograd.gradcheck(run, [t.detach().requires_grad_() for t in inputs])
