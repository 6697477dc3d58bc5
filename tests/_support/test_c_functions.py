"""Functions that PyTorch has in C count and check their arguments in C's words."""

import inspect
from dataclasses import dataclass

import pytest

from flambeau._support import c_functions as c


@c.takes_nothing
def nothing():
    return "nothing"


@c.takes_one
def one(value):
    return [value]


one_of_c = c.takes_one(lambda value: value, name="one_of_c", home="torch._C")


@c.takes_positions
def several(a, b=2):
    return a, b


class Counter:
    @c.counted
    def reset(self):
        return 0

    @c.counted
    def add(self, value):
        return value + 1


def test_right_calls_go_through():
    assert (nothing(), one(None), several(1), several(1, 3)) == ("nothing", [None], (1, 2), (1, 3))
    assert (Counter().reset(), Counter().add(2)) == (0, 3)
    assert nothing.__module__ == "flambeau" and one_of_c.__module__ == "flambeau._C"


@pytest.mark.parametrize("call, message", [
    (lambda: nothing(1, 2), r"torch.nothing\(\) takes no arguments \(2 given\)"),
    (lambda: nothing(a=1), r"torch.nothing\(\) takes no keyword arguments"),
    (lambda: one(), r"torch.one\(\) takes exactly one argument \(0 given\)"),
    (lambda: one(value=1), r"torch.one\(\) takes no keyword arguments"),
    (lambda: one_of_c(1, 2), r"torch._C.one_of_c\(\) takes exactly one argument \(2 given\)"),
    (lambda: several(a=1), r"torch.several\(\) takes no keyword arguments"),
    (lambda: Counter().reset(1), r"Counter.reset\(\) takes no arguments \(1 given\)"),
    (lambda: Counter().add(), r"Counter.add\(\) takes exactly one argument \(0 given\)"),
])
def test_wrong_counts(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_properties_that_nobody_writes_to():
    class Node:
        @c.ReadOnly
        def size(self):
            return 3

    assert Node().size == 3
    with pytest.raises(AttributeError, match="attribute 'size' of 'Node' objects is not writable"):
        Node().size = 4


def test_constants_are_frozen_but_for_what_is_private():
    @c.frozen
    class kind:
        code = 1

    constant = kind()
    constant._cache = 3
    del constant._cache
    with pytest.raises(AttributeError, match=r"'code' of 'torch\.kind' objects is not writable"):
        constant.code = 2
    with pytest.raises(AttributeError, match=r"'torch\.kind' object has no attribute 'other'"):
        constant.other = 2


def test_messages_of_pybind_list_the_signature():
    @c.matched("(name: str, count: int = 1) -> None")
    def repeat(name, count=1):
        return name * count

    assert repeat("ab") == "ab" and repeat("ab", count=2) == "abab"
    for args, kwargs in ((3,), {}), (("a", "b"), {}), (("a", 1, 2), {}), (("a",), {"name": "b"}), \
            (("a",), {"other": 1}):
        with pytest.raises(TypeError) as caught:
            repeat(*args, **kwargs)
        said = str(caught.value)
        assert said.startswith("repeat(): incompatible function arguments.")
        assert "    1. (name: str, count: int = 1) -> None\n\nInvoked with: " in said


def test_classes_without_instances_have_a_signature_without_parameters():
    class Handle:
        __signature__ = c.NoArguments()
    assert str(inspect.signature(Handle)) == "()"


@c.bound_in_c
class Queue:
    def __init__(self):
        self.values = []

    def push(self, value: int, keys: list[str] = ()) -> None:
        self.values.append((value, list(keys)))

    def map(self, *values):
        return values


@pytest.mark.parametrize("args, kwargs", [
    ((), {}), ((1.5,), {}), (("1",), {}), ((1, "key"), {}), ((1, ["a", 2]), {}),
    ((1, ["a"], 2), {}), ((1,), {"value": 1}), ((1,), {"other": 1})])
def test_classes_of_pybind_refuse_what_their_methods_are_not_written_for(args, kwargs):
    with pytest.raises(TypeError, match=r"^push\(\): incompatible function arguments. The "
                                        "following argument types are supported:\n    1. "):
        Queue().push(*args, **kwargs)


def test_classes_of_pybind_take_what_their_methods_are_written_for():
    queue = Queue()
    queue.push(1)
    queue.push(value=True, keys=("a", b"b"))
    assert queue.values == [(1, []), (True, ["a", b"b"])] and queue.map(1) == (1,)
    with pytest.raises(TypeError, match=r"^push.*incompatible"):
        Queue.push(object(), 1)
    with pytest.raises(TypeError, match=r"^__init__.*incompatible constructor"):
        Queue(1)


def test_fields_of_pybind_have_the_type_that_they_are_written_with():
    @dataclass
    class Options(c.FieldsInC):
        root: "int" = 0
        value: "object" = None
    options = Options(1, "anything")
    options.root = True
    with pytest.raises(TypeError, match=r"^\(\): incompatible function arguments"):
        options.root = 1.5


def test_one_of_several_signatures_fits():
    several = "(arg0: str) -> int\n(arg0: str, arg1: bool) -> int"
    taken = c.matched(several)(lambda *args: len(args))
    assert taken("a") == 1 and taken("a", None) == 2
    with pytest.raises(TypeError, match=r"1\. \(arg0: str\) -> int\n    2\. \(arg0: str, arg1"):
        taken("a", [])
