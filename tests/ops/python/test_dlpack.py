"""Capsules of a tensor's memory, and what is refused before there is one."""
import numpy as np
import pytest

import flambeau as torch


def test_arrays_look_at_the_memory():
    x = torch.zeros(2)
    np.from_dlpack(x)[0] = 1
    assert x.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("options, error, message", [
    ({"copy": 1}, TypeError, r"_to_dlpack\(\): argument 'copy' must be bool, not int"),
    ({"stream": "1"}, TypeError, "stream must be"), ({"stream": 1}, AssertionError, "None on cpu")])
def test_options_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        torch.zeros(2).__dlpack__(**options)


def test_what_requires_gradients_is_refused():
    with pytest.raises(BufferError, match="require gradient"):
        torch.zeros(2, requires_grad=True).__dlpack__()
