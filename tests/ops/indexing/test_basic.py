"""Views by index: the part of memory that NumPy's are, and gradients put back."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flambeau as torch

BASE = np.arange(24.0).reshape(2, 3, 4)
items = st.one_of(st.integers(-2, 1), st.just(...), st.none(), st.slices(3).filter(
    lambda s: s.step is None or s.step > 0))


@given(st.lists(items, max_size=4).filter(lambda i: sum(x is ... for x in i) < 2).map(tuple))
def test_views_are_numpys(index):
    try:
        wanted = BASE[index]
    except IndexError:
        with pytest.raises(IndexError):
            torch.from_numpy(BASE)[index]
        return
    found = torch.from_numpy(BASE)[index]
    assert np.array_equal(found.numpy(), wanted)
    assert not wanted.size or np.shares_memory(found.numpy(), BASE)


@pytest.mark.parametrize("index", [0, (slice(None), 1), (..., slice(1, 3)), (None, 1), (1, 2, 3)])
def test_gradients_go_back_to_their_places(index):
    x = torch.tensor(BASE, requires_grad=True)
    x[index].sum().backward()
    wanted = np.zeros_like(BASE)
    wanted[index] = 1
    assert np.array_equal(x.grad.numpy(), wanted)


def test_steps_go_forward():
    with pytest.raises(ValueError, match="step must be greater than zero"):
        torch.ones(3)[::-1]
