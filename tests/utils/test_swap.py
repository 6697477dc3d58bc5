"""Exchanging two tensors."""
import weakref

import pytest

import flambeau
from flambeau.utils import swap_tensors


def test_everything_moves():
    leaf = flambeau.ones(2, requires_grad=True)
    result, other = leaf * 2, flambeau.nn.Parameter(flambeau.zeros(3))
    other.mark = "here"
    holder = [result, other]
    swap_tensors(result, other)
    assert holder[0] is result and holder[1] is other
    assert type(result) is flambeau.nn.Parameter and type(other) is flambeau.Tensor
    assert result.mark == "here" and not hasattr(other, "mark")
    assert result.tolist() == [0, 0, 0] and other.tolist() == [2, 2]
    other.sum().backward()
    assert leaf.grad.tolist() == [2, 2]


def test_a_view_stays_one_of_its_base():
    base, other = flambeau.ones(3), flambeau.zeros(2)
    view = base[:2]
    swap_tensors(view, other)
    other.fill_(5)
    assert base.tolist() == [5, 5, 1] and other._base is base and view._base is None


def test_refusals():
    tensor, other = flambeau.ones(2), flambeau.zeros(2)
    reference = weakref.ref(other)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        swap_tensors(tensor, other)
    del reference

    class Slotted(flambeau.Tensor):
        __slots__ = ("more",)

    with pytest.raises(RuntimeError, match="different slots"):
        swap_tensors(tensor, flambeau.ones(1).as_subclass(Slotted))
