"""Binding in Python: which value goes to which parameter, and what fits where."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.schema.arguments import (
    NoFurtherOverload,
    as_declared,
    bind,
    bound_by,
    fits,
    is_index,
    is_int,
)
from flambeau.schema.parser import parse
from flambeau.schema.signature import function_signature

x = torch.ones(2)
SUM = function_signature(parse("sum(Tensor self, int[1]? dim, bool keepdim=False, *, "
                               "ScalarType? dtype=None) -> Tensor"))


def parameter(text):
    return parse(f"f({text}) -> ()").parameters[0]


def test_by_position_by_name_and_by_default():
    assert bind(SUM, "sum", (x, 0), {}) == [x, (0,), False, None]
    assert bind(SUM, "sum", (x,), {"keepdim": True, "dim": None}) == [x, None, True, None]
    assert bind(SUM, "sum", (), {"input": x, "axis": [0, 1]})[1] == [0, 1]     # NumPy's names


@pytest.mark.parametrize("args,kwargs,said", [
    ((), {}, 'sum() missing 2 required positional argument: "input", "dim"'),
    ((x, 0, False, None), {}, "sum() takes from 2 to 3 positional arguments but 4 were given"),
    ((x, 0), {"dim": 1}, "sum() got multiple values for argument 'dim'"),
    ((x, 0), {"of": 1}, "sum() got an unexpected keyword argument 'of'"),
    ((x, "a"), {}, "sum(): argument 'dim' (position 2) must be tuple of ints, not str"),
    ((x, (0, 1.5)), {}, "sum(): argument 'dim' failed to unpack the object at pos 2")])
def test_what_does_not_fit(args, kwargs, said):
    assert bind(SUM, "sum", args, kwargs).startswith(said)


@pytest.mark.parametrize("text,right,wrong", [
    ("int n", [1, np.int64(1), torch.tensor(1)], [1.0, True, "1", torch.ones(2), None]),
    ("float n", [1, 1.5, np.float32(1), torch.tensor(1.0)], ["1", 1j, torch.ones(2)]),
    ("bool n", [True, np.bool_(False)], [0, 1.0, "True"]),
    ("Scalar n", [1, 1.5, 1j, True], ["1", [1]]),
    ("int[] n", [[1, 2], (), (torch.tensor(1),)], [1, (1.5,), "ab"]),
    ("int[2] n", [1, (1, 2)], [1.5, "a"]),
    ("float[] n", [[1, 1.5]], [1.5, [torch.tensor(1.0)], ["a"]]),
    ("str n", ["a", b"a"], [1, ["a"]]),
    ("ScalarType n", [torch.int8, float], ["float32", np.float32]),
    ("Device n", ["cpu", torch.device("cpu"), 0], [1.5]),
    ("Tensor[] n", [[x, x], ()], [x, 1])])
def test_what_fits_a_type(text, right, wrong):
    p = parameter(text)
    assert [fits(p, value) for value in right] == [True] * len(right)
    assert [bool(fits(p, value)) for value in wrong] == [False] * len(wrong)


def test_a_list_with_something_else_ends_the_search():
    with pytest.raises(NoFurtherOverload,
                       match="expected Tensor as element 1 in argument 0, but got int"):
        fits(parameter("Tensor[] n"), [x, 1])


def test_a_tensor_with_a_history_is_no_number():
    assert fits(parameter("float n"), torch.tensor(1.0))
    assert not fits(parameter("float n"), torch.tensor(1.0, requires_grad=True))


def test_bools_are_numbers_only_among_several():
    assert not is_int(True) and is_index(torch.tensor(True)) and not is_int(torch.tensor(True))


def test_values_become_what_is_declared():
    assert as_declared(parameter("int[2] n"), 3) == (3, 3)
    assert type(as_declared(parameter("int n"), torch.tensor(2))) is int
    assert as_declared(parameter("Scalar n"), np.float32(0.5)) == 0.5
    assert as_declared(parameter("int[] n"), [torch.tensor(1), 2]) == (1, 2)


def test_arrays_that_are_one_number_are_sizes():
    assert is_index(np.array(3)) and not is_index(np.array([3])) and not is_index(np.array(3.0))
    assert torch.ones(np.array(3)).shape == (3,)
    assert torch.zeros(np.array(2), np.array(4)).shape == (2, 4)
    assert torch.ones(2, 3).view(np.array(6)).shape == (6,)
    with pytest.raises(TypeError, match=r"must be tuple of ints"):
        torch.ones(np.array(3.0))


def test_calls_are_bound_by_the_first_schema_that_fits():
    @bound_by("scale(Tensor self, float factor=2)", "scale(int count)")
    def scale(*values):
        return values

    assert scale(3) == (3,)
    with pytest.raises(TypeError, match=r"scale\(\) received an invalid combination of arguments"):
        scale("three")
