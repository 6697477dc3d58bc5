"""Numerical derivatives for the kernels' tests."""

import numpy as np
import pytest


def _derivative(function, x, step=1e-6):
    """The gradient of the scalar `function` at x by central differences."""
    x = x.copy()
    result = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        middle = x[place]
        x[place] = middle + step
        above = function(x)
        x[place] = middle - step
        below = function(x)
        x[place] = middle
        result[place] = (above - below) / (2 * step)
    return result


@pytest.fixture
def derivative():
    return _derivative


@pytest.fixture
def normal():
    """A function that draws float64 arrays of a shape."""
    return np.random.default_rng(0).standard_normal
