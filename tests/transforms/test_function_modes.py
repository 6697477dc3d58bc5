"""Modes and subclasses that take functions over: who is asked, in which order, and ways around."""
from types import FunctionType

import pytest

import flambeau as torch
from flambeau.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
)


class Recording(TorchFunctionMode):
    def __init__(self, name, log):
        super().__init__()
        self.name, self.log = name, log

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(self.name)
        return func(*args, **(kwargs or {}))


def test_the_innermost_mode_is_asked_first_and_set_aside_inside():
    log = []
    with Recording("outer", log), Recording("inner", log):
        torch.add(torch.ones(1), 1)
    assert log[:2] == ["inner", "outer"] or log[-2:] == ["inner", "outer"]


class Celsius(torch.Tensor):
    pass


def test_results_keep_the_subclass():
    x = torch.ones(2).as_subclass(Celsius)
    assert type(x + 1) is Celsius and type(x.max(0).values) is Celsius
    assert [type(t) for t in x.unbind()] == [Celsius, Celsius] and type(x.numpy()) is not Celsius


def test_subclasses_can_be_set_aside():
    x = torch.ones(2).as_subclass(Celsius)
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
    log = []
    with Recording("mode", log), torch._C.DisableTorchFunction():
        torch.add(x, 1)
    assert log == []


class Foreign:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented if func is torch.mul else ("foreign", func)


def test_types_that_are_no_tensors_take_over():
    other = Foreign()
    assert is_tensor_like(other) and has_torch_function((other,))
    assert torch.add(torch.ones(1), other) == ("foreign", torch.add)
    with pytest.raises(TypeError, match=r"no implementation found for '\w+\.mul'"):
        torch.mul(torch.ones(1), other)
    assert handle_torch_function(torch.sum, (other,), other)[0] == "foreign"


def test_functions_of_pytorch_itself_are_those_of_that_name_here():
    """A program may hold both: what PyTorch asks a tensor of ours to run is not asked again."""
    def again(*args, **kwargs):
        raise AssertionError("asked again")
    softmax = FunctionType(again.__code__, {"__name__": "torch.nn.functional"}, "softmax")
    x = torch.ones(2, requires_grad=True)
    found = torch.Tensor.__torch_function__(softmax, (torch.Tensor,), (x, 0))
    assert found.tolist() == [0.5, 0.5]
    assert found.requires_grad
    unknown = FunctionType(again.__code__, {"__name__": "torch.nn.functional"}, "no_such")
    with pytest.raises(NotImplementedError, match="no_such"):
        torch.Tensor.__torch_function__(unknown, (torch.Tensor,), (x,))


@pytest.mark.parametrize("call, shown", [
    (lambda x: x.conj(), True), (lambda x: x.abs(), True), (lambda x: x.dim(), True),
    (lambda x: x.shape, True), (lambda x: -x, True), (lambda x: torch.nn.functional.relu(x), True),
    (lambda x: torch.conj(x), False), (lambda x: x.sum(), False), (lambda x: x + 1, False),
    (lambda x: x[0], False), (lambda x: x.size(), False), (lambda x: x.float(), False)])
def test_what_binds_arguments_does_not_show_the_type_of_plain_tensors(call, shown):
    """A method without arguments, a property and a function of Python do."""
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(types)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    with Mode():
        call(x)
    assert seen[0] == ((torch.Tensor,) if shown else ())
