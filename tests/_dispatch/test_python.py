"""Switches of the dispatcher in Python: what is computed inside is the same."""

import pytest

import flambeau as torch
from flambeau._dispatch import python


@pytest.mark.parametrize("switch", [python.enable_python_dispatcher, python.no_python_dispatcher])
def test_gradients_are_the_same_inside(switch):
    x = torch.arange(3.0, requires_grad=True)
    with switch():
        (x * x).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0]


def test_switches_can_be_nested_and_pass_errors_on():
    with pytest.raises(ZeroDivisionError), python.enable_python_dispatcher():
        with python.no_python_dispatcher():
            assert torch.ones(2).add(1).tolist() == [2.0, 2.0]
        raise ZeroDivisionError
