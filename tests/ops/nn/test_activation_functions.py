"""Activation functions: in place they are what they are out of place, and closed forms hold."""
import pytest

import flambeau as torch

F = torch.nn.functional
INPLACE = ("relu", "relu6", "elu", "selu", "celu", "leaky_relu", "silu", "mish", "hardtanh",
           "hardsigmoid", "hardswish")


@pytest.mark.parametrize("name", INPLACE)
def test_in_place(name):
    x = torch.linspace(-4, 4, 17)
    y = x.clone()
    wanted = getattr(F, name)(x)
    assert getattr(F, name)(y, inplace=True) is y and torch.equal(y, wanted)


@pytest.mark.parametrize("name,formula", [
    ("silu", lambda x: x / (1 + (-x).exp())), ("softsign", lambda x: x / (1 + x.abs())),
    ("mish", lambda x: x * (1 + x.exp()).log().tanh()), ("tanhshrink", lambda x: x - x.tanh()),
    ("logsigmoid", lambda x: -(1 + (-x).exp()).log()), ("softplus", lambda x: (1 + x.exp()).log()),
    ("hardswish", lambda x: x * (x + 3).clamp(0, 6) / 6),
    ("gelu", lambda x: x * (1 + torch.erf(x / 2 ** 0.5)) / 2)])
def test_closed_forms(name, formula):
    x = torch.linspace(-4, 4, 33, dtype=torch.float64)
    assert torch.allclose(getattr(F, name)(x), formula(x))
