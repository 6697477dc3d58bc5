"""What the dispatcher takes as a value of a type."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flambeau
from flambeau.schema.casts import Misfit, cast
from flambeau.schema.function_schema import parse_type


@pytest.mark.parametrize("declared, length, value, expected", [
    ("int", None, True, 1), ("int", None, np.float32(2), 2), ("int", None, flambeau.float32, 6),
    ("int", None, flambeau.tensor([1.5]), 1), ("SymInt", None, flambeau.tensor([[3]]), 3),
    ("int[2]", 2, 3, [3, 3]), ("int[]", None, {4}, [4]), ("SymInt[]", None, range(2), [0, 1]),
    ("int[]", None, np.array([1, 2]), [1, 2]), ("float", None, 1, 1.0), ("bool", None, None, False),
    ("bool", None, 5, True), ("bool", None, flambeau.ones(1), True), ("str", None, b"mean", "mean"),
    ("ScalarType?", None, 6, flambeau.float32), ("ScalarType?", None, None, None),
    ("Layout", None, 0, flambeau.strided), ("Scalar", None, flambeau.float32, 6),
    ("Device?", None, "cpu", flambeau.device("cpu")),
])
def test_what_is_taken(declared, length, value, expected):
    found = cast(parse_type(declared, real=True), value, length)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize("declared, length, value", [
    ("int", None, 1.0), ("int", None, 2 ** 63), ("int", None, "1"), ("int", None, None),
    ("int", None, flambeau.ones(2)), ("int", None, flambeau.ones((), device="meta")),
    ("SymInt", None, flambeau.float32), ("SymInt[2]", 2, 3), ("int[2]", 2, np.int64(3)),
    ("int[]", None, {0: 1}),
    ("int[]", None, flambeau.tensor([1])), ("int[]", None, b"a"), ("int[]", None, 3),
    ("SymInt[]", None, [flambeau.tensor(1.0)]), ("float[]", None, 1.5), ("float", None, 1j),
    ("float", None, 2 ** 2000), ("bool", None, []), ("bool", None, "a"), ("str", None, 1),
    ("bool", None, flambeau.ones(2)), ("ScalarType", None, flambeau.strided),
    ("Scalar", None, flambeau.tensor(1)), ("Scalar", None, np.float32(1)), ("Tensor", None, 1),
    ("Tensor[]", None, [flambeau.ones(2), None]), ("Tensor?[]", None, [1]),
    ("Generator?", None, 1), ("Device", None, 0),
])
def test_what_is_refused(declared, length, value):
    with pytest.raises(Misfit):
        cast(parse_type(declared, real=True), value, length)


@given(st.integers(-2 ** 70, 2 ** 70))
def test_integers_have_64_bits(n):
    if -2 ** 63 <= n < 2 ** 63:
        assert cast(parse_type("int"), n) == n
    else:
        with pytest.raises(Misfit):
            cast(parse_type("int"), n)
    if not -2 ** 63 <= n < 2 ** 64:
        with pytest.raises(OverflowError, match="int too big to convert"):
            cast(parse_type("Scalar"), n)


def test_a_number_stands_for_a_tensor_where_the_op_says_so():
    assert cast(parse_type("Tensor"), 2, numbers=True) == 2
    with pytest.raises(Misfit, match="Unable to cast a to Tensor"):
        cast(parse_type("Tensor"), "a", numbers=True)
