"""Functions in Python: Python binds their arguments, and overriding types are asked first."""
from __future__ import annotations

import inspect
import pickle

import pytest

import flambeau as torch
from flambeau.core.op import public, table
from flambeau.dispatch.python_functions import python_function
from flambeau.nn import functional as F


def thrice(input, times=3, *, plus=0):
    """So many times the input."""
    return input * times + plus


BODY = thrice


@pytest.fixture(name="thrice")
def declared():
    yield python_function(namespace="nn.functional")(BODY)
    del public["nn.functional"]["thrice"], table["nn.functional.thrice"]


def test_python_binds_the_arguments(thrice):
    x = torch.ones(2)
    assert thrice(x).tolist() == [3, 3] and thrice(times=2, input=x, plus=1).tolist() == [3, 3]
    assert str(inspect.signature(thrice)) == "(input, times=3, *, plus=0)"
    assert thrice.__doc__ == "So many times the input." and thrice.__name__ == "thrice"
    with pytest.raises(TypeError, match=r"^thrice\(\) got an unexpected keyword argument 'y'$"):
        thrice(x, y=1)
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'input'$"):
        thrice()


def test_who_is_asked_first(thrice):
    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function, args[1:], kwargs

    assert thrice(torch.ones(2).as_subclass(Asked), 2, plus=1) == \
        (thrice, (), {"times": 2, "plus": 1})

    class Seen(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            functions.append(function)
            return function(*args, **(kwargs or {}))

    functions: list = []
    x = torch.ones(2)
    with Seen():
        thrice(x)
        thrice(times=2, input=x)
        with pytest.raises(TypeError, match="multiple values"):
            thrice(x, 1, times=2)
    assert functions[:2] == [thrice, thrice]


def test_transforms_see_the_ops_of_the_body(thrice):
    x = torch.arange(6.0).view(2, 3)
    assert torch.equal(torch.func.vmap(thrice)(x), 3 * x)
    assert torch.func.grad(lambda x: thrice(x).sum())(x).tolist() == [[3, 3, 3]] * 2


@pytest.mark.parametrize("function", [torch.cdist, torch.atleast_1d, F.interpolate])
def test_functions_are_pickled_by_name(function):
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("call, word", [
    (lambda wrong: torch.svd_lowrank(wrong), "shape"),
    (lambda wrong: torch.pca_lowrank(wrong), "shape"),
    (lambda wrong: torch.lobpcg(wrong), "requires_grad"),
    (lambda wrong: torch.stft(wrong, 2), "dim")])
@pytest.mark.parametrize("wrong", [None, 1, [1.0]])
def test_what_is_no_tensor_lacks_what_tensors_publicly_have(call, word, wrong):
    """A body asks what it is given by words that users know, in PyTorch's order."""
    said = f"^'{type(wrong).__name__}' object has no attribute '{word}'$"
    with pytest.raises(AttributeError, match=said):
        call(wrong)
