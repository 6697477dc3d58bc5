"""Products of bfloat16 matrices: sums in float32, rounded once."""
import numpy as np
import pytest

import flambeau
from flambeau import nn


def exact(a, b):
    return np.matmul(a.double().numpy(), b.double().numpy())


SHAPES = [((64, 70), (70, 50)), ((33, 65), (65, 17)), ((200, 10), (10, 200)),
          ((5, 40, 64), (5, 64, 50)), ((13, 301), (301, 40))]


@pytest.mark.parametrize("left,right", SHAPES)
@pytest.mark.parametrize("turned", [False, True])
def test_against_doubles(left, right, turned):
    flambeau.manual_seed(0)
    a, b = flambeau.randn(left).bfloat16(), flambeau.randn(right).bfloat16()
    if turned:
        a, b = a.mT.contiguous().mT, b.mT.contiguous().mT
    found, expected = a @ b, exact(a, b)
    assert found.dtype == flambeau.bfloat16
    assert np.abs(found.double().numpy() - expected).max() <= 2 ** -8 * np.abs(expected).max()


def test_with_bias_and_factors():
    flambeau.manual_seed(1)
    x, w, c = (flambeau.randn(*size).bfloat16() for size in ((30, 80), (40, 80), (40,)))
    expected = exact(x, w.t()) + c.double().numpy()
    limit = 2 ** -8 * np.abs(expected).max()
    assert np.abs(nn.functional.linear(x, w, c).double().numpy() - expected).max() <= limit
    d = flambeau.randn(30, 40).bfloat16()
    expected = 2 * exact(x, w.t()) + 0.5 * d.double().numpy()
    found = flambeau.addmm(d, x, w.t(), beta=0.5, alpha=2)
    assert np.abs(found.double().numpy() - expected).max() <= 2 ** -8 * np.abs(expected).max()
