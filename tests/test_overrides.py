"""Functions that classes can override, and the classes that do."""

import pytest

import flambeau as torch
from flambeau import overrides


class Celsius:
    """Numbers with a unit: functions see them as they are."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types, args


def test_functions_ask_the_class():
    name, types, args = torch.add(Celsius(1), 2)
    assert name == "add" and tuple(types) == (Celsius,) and args[1] == 2


@pytest.mark.parametrize("args, expected", [
    ((torch.ones(1),), False), ((1, "a"), False), ((Celsius(1),), True),
    ((torch.ones(1), Celsius(1)), True)])
def test_who_overrides(args, expected):
    assert overrides.has_torch_function(args) is expected


def test_subclasses_are_asked_first():
    class Kelvin(Celsius):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "kelvin"
    assert torch.add(Celsius(1), Kelvin(2)) == torch.add(Kelvin(1), Celsius(2)) == "kelvin"
    asked = overrides._get_overloaded_args((Celsius(1), Kelvin(2), 3))
    assert [type(a) for a in asked] == [Kelvin, Celsius]


def test_nobody_answers():
    class Silent:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented
    with pytest.raises(TypeError, match=r"Multiple dispatch failed|no implementation found"):
        torch.add(Silent(), 1)


def test_names_of_functions():
    assert overrides.resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert overrides.resolve_name(torch.add) == "torch.add"
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert overrides.is_tensor_method_or_property(torch.Tensor.grad.__get__)
    assert not overrides.is_tensor_method_or_property(torch.add)


def test_what_can_be_overridden_and_what_not():
    assert torch.add in overrides.get_testing_overrides()
    assert torch.save in overrides.get_ignored_functions()
    assert torch.add in overrides.get_overridable_functions()[torch]
    assert overrides.is_tensor_like(torch.ones(1)) and overrides.is_tensor_like(Celsius(1))
    assert not overrides.is_tensor_like(3)


def test_wrapped_functions_ask_too():
    @overrides.wrap_torch_function(lambda a, b: (a, b))
    def first(a, b):
        return a
    assert first(1, 2) == 1 and first(1, Celsius(2))[0] == "first"


def test_modes_are_made_by_push():
    with pytest.warns(UserWarning, match="no longer necessary"):
        assert type(overrides.BaseTorchFunctionMode.push()) is overrides.BaseTorchFunctionMode
