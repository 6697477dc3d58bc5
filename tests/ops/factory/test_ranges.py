"""Numbers at equal steps: ends, steps, types, and gradients of nothing."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flambeau as torch


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 7))
def test_whole_numbers(start, end, step):
    step = step if end >= start else -step
    found = torch.arange(start, end, step)
    assert found.dtype is torch.int64 and found.tolist() == list(range(start, end, step))


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_both_ends_are_reached(n):
    assert np.allclose(torch.linspace(-1, 2, n, dtype=torch.float64).numpy(), np.linspace(-1, 2, n))
    assert np.allclose(torch.logspace(0, 2, n, dtype=torch.float64).numpy(), np.logspace(0, 2, n))


def test_steps_of_fractions():
    assert np.allclose(torch.arange(0, 1, 0.1, dtype=torch.float64).numpy(), np.arange(0, 1, 0.1))
    assert len(torch.arange(1, 0, -0.25)) == 4


@pytest.mark.parametrize("args", [(0, 3, -1), (3, 0, 1)])
def test_steps_must_lead_to_the_end(args):
    with pytest.raises(RuntimeError, match="upper bound and lower bound inconsistent with step"):
        torch.arange(*args)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        torch.arange(0, 3, 0)


def test_the_old_range_includes_its_end():
    with pytest.warns(UserWarning, match="deprecated"):
        assert torch.range(1, 3).tolist() == [1.0, 2.0, 3.0]
