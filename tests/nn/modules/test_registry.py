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
