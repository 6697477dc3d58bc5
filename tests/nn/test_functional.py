"""Functions of neural networks that belong to no family, and what stands in the module."""
import pytest

import flambeau
from flambeau import nn
from flambeau.nn import functional as F

_ROWS = flambeau.rand(2, 4, 8)


@pytest.mark.parametrize("layer, input, name", [
    (nn.SiLU(), _ROWS, "silu"), (nn.ELU(), _ROWS, "elu"), (nn.Softmax(1), _ROWS, "softmax"),
    (nn.ReLU(), _ROWS, "relu"), (nn.Softshrink(), _ROWS, "softshrink"),
    (nn.LogSigmoid(), _ROWS, "logsigmoid"), (nn.MaxPool1d(2), _ROWS, "max_pool1d"),
    (nn.AvgPool2d(2), _ROWS, "avg_pool2d"), (nn.AdaptiveAvgPool1d(2), _ROWS, "adaptive_avg_pool1d"),
    (nn.LPPool1d(2, 2), _ROWS, "lp_pool1d"), (nn.Conv1d(4, 2, 3), _ROWS, "conv1d"),
    (nn.ConvTranspose1d(4, 2, 3), _ROWS, "conv_transpose1d"), (nn.Linear(8, 2), _ROWS, "linear"),
])
def test_layers_call_the_functions_that_stand_in_functional(monkeypatch, layer, input, name):
    """Programs that count operations replace them."""
    monkeypatch.setattr(F, name, lambda *args, **kwargs: (name, args[0]))
    assert layer(input) == (name, input)


def test_gradients_of_convolutions_are_found_beside_them():
    from flambeau.nn import functional, grad
    assert functional.grad is grad
