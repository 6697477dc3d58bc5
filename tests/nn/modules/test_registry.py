"""What a module takes as a member's name."""
import pytest

import flambeau
from flambeau import nn


class Ball(nn.Module):
    """Registers `k`, which a subclass works out from something that is not there yet."""

    def __init__(self):
        super().__init__()
        self.k = nn.Parameter(flambeau.ones(2))


class NegatedBall(Ball):
    def __init__(self):
        super().__init__()
        self.c = nn.Parameter(flambeau.full((2,), 3.0))

    @property
    def k(self):
        return -self.c


def test_a_property_that_has_no_value_yet_does_not_reserve_its_name():
    ball = NegatedBall()
    assert list(dict(ball.named_parameters())) == ["k", "c"]
    assert ball.k.tolist() == [-3.0, -3.0]


def test_a_property_that_has_a_value_reserves_its_name():
    class Fixed(Ball):
        @property
        def k(self):
            return 1

    with pytest.raises(KeyError, match="attribute 'k' already exists"):
        Fixed()


@pytest.mark.parametrize("register", ["register_parameter", "register_buffer", "register_module"])
def test_a_method_reserves_its_name(register):
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        getattr(nn.Linear(1, 1), register)("forward", None)


def test_a_parameter_gives_way_to_none_alone():
    layer = nn.Linear(2, 1)
    for value in (nn.ReLU(), flambeau.ones(1), 3):
        with pytest.raises(TypeError, match="as parameter 'weight'"):
            layer.weight = value
    layer.bias = None
    assert list(layer.state_dict()) == ["weight"] and layer(flambeau.ones(1, 2)).shape == (1, 1)


def test_a_parameter_takes_the_place_of_a_module_and_of_a_buffer():
    layer = nn.BatchNorm1d(2)
    layer.running_mean = nn.Parameter(flambeau.ones(2))
    assert "running_mean" not in layer._buffers and "running_mean" in layer._parameters
    net = nn.Sequential(nn.ReLU())
    setattr(net, "0", nn.Parameter(flambeau.ones(1)))
    assert len(net) == 0 and list(net._parameters) == ["0"]
