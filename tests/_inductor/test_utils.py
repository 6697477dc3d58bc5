"""Small functions of the compiler's."""
import math

import pytest

import flambeau as torch
from flambeau._inductor import utils
from flambeau.fx.experimental.proxy_tensor import make_fx


@pytest.mark.parametrize(("a", "b"), [(7, 2), (8, 2), (0, 3), (1, 5), (-7, 2)])
def test_quotients_are_rounded_up(a, b):
    assert utils.ceildiv(a, b) == math.ceil(a / b)


def test_saved_values_come_first():
    x = torch.ones(1)
    assert utils.count_tangents(make_fx(lambda x, tangents_1: x * tangents_1)(x, x)) == 1
    assert utils.count_tangents(make_fx(lambda tangents_1: tangents_1)(x)) == 0
    with pytest.raises(AssertionError):
        utils.count_tangents(make_fx(lambda tangents_1, x: x * tangents_1)(x, x))


def test_devices():
    assert utils.is_cpu_device([torch.ones(1), torch.zeros(2)])
    assert not utils.is_cpu_device([torch.ones(1, device="meta")])
