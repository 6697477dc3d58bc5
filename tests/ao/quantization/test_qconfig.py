"""Which observers and what they are for."""
import pytest

import flambeau as torch
from flambeau.ao import quantization as Q

X = torch.tensor([[-1.0, 0.5, 2.0], [0.25, 3.0, 1.0]])


def test_configurations_and_marks():
    config = Q.QConfig(Q.default_observer, Q.default_weight_observer)
    assert Q.qconfig_equals(config, Q.QConfig(Q.default_observer, Q.default_weight_observer))
    assert not Q.qconfig_equals(config, None)
    with pytest.raises(ValueError, match="observer instance"):
        Q.QConfig(Q.MinMaxObserver(), None)
    linear = torch.nn.Linear(3, 2)
    wrapped = Q.QuantWrapper(linear)
    assert torch.equal(wrapped(X), linear(X))
    linear.qconfig = config
    model = Q.add_quant_dequant(torch.nn.Sequential(linear, torch.nn.ReLU()))
    assert isinstance(model[0], Q.QuantWrapper) and isinstance(model[1], torch.nn.ReLU)
