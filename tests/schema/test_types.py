"""Types as TorchScript shows them."""
import pytest

from flambeau.schema.types import (
    AnyType,
    FloatType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    TensorType,
    parse_type,
)


@pytest.mark.parametrize("text,shown", [
    ("Tensor", "Tensor"), ("int", "int"), ("int[]", "List[int]"),
    ("int[2]?", "Optional[List[int]]"),
    ("Tensor?[]", "List[Optional[Tensor]]"), ("float?", "Optional[float]"),
    ("Tensor(a!)", "Tensor"), ("str", "str"), ("bool[3]", "List[bool]")])
def test_types_of_schemas(text, shown):
    assert str(parse_type(text)) == shown == parse_type(text).annotation_str


def test_equal_types_are_equal():
    assert parse_type("int[]") == ListType.ofInts() and hash(IntType()) == hash(IntType())
    assert IntType() != FloatType() and OptionalType.ofTensor() == parse_type("Tensor?")


def test_subtypes():
    assert IntType().isSubtypeOf(NumberType()) and IntType().isSubtypeOf(AnyType())
    assert NoneType().isSubtypeOf(OptionalType.ofTensor())
    assert TensorType().isSubtypeOf(OptionalType.ofTensor())
    assert not NumberType().isSubtypeOf(IntType())
