"""The types of TorchScript say what PyTorch's say."""

import enum
from typing import Any

import pytest

import flambeau as torch
from flambeau.jit.annotations import (
    ann_to_type,
    get_signature,
    get_type_line,
    parse_type_line,
    try_ann_to_type,
)
from flambeau.schema import types as T

INT, FLOAT, STR, NONE = (getattr(T, f"{n}Type").get() for n in ("Int", "Float", "String", "None"))
TENSOR = T.TensorType.get()

# type, as annotation, as schema, kind: recorded from PyTorch 2.13
SAID = [(INT, "int", "int", "IntType"), (T.ListType(INT), "List[int]", "int[]", "ListType"),
        (T.OptionalType(FLOAT), "Optional[float]", "float?", "OptionalType"),
        (T.DictType(STR, TENSOR), "Dict[str, Tensor]", "Dict(str, Tensor)", "DictType"),
        (T.TupleType([INT, FLOAT]), "Tuple[int, float]", "(int, float)", "TupleType"),
        (T.TupleType([]), "Tuple[()]", "()", "TupleType"),
        (T.FutureType(INT), "Future[int]", "Future[int]", "FutureType"),
        (T.NumberType.get(), "number", "Scalar", "NumberType"),
        (T.UnionType([INT, FLOAT]), "Union[float, int]", "Union(float, int)", "UnionType"),
        (T.UnionType([INT, STR, NONE]), "Union[int, NoneType, str]", "Union(int, NoneType, str)",
         "UnionType"),
        (T.UnionType([STR, TENSOR, T.BoolType.get(), T.ListType(INT), T.ComplexType.get(), NONE,
                      FLOAT, INT]), "Union[Tensor, List[int], NoneType, str, bool, number]",
         "Union(Tensor, int[], NoneType, str, bool, Scalar)", "UnionType"),
        (T.ListType(T.OptionalType(INT)), "List[Optional[int]]", "int?[]", "ListType"),
        (T.SymIntType.get(), "int", "SymInt", "SymIntType"),
        (T._GeneratorType.get(), "Generator", "Generator", "GeneratorType"),
        (T.OptionalType(T.UnionType([INT, STR])), "Optional[Union[int, str]]", None, None),
        (T.DeviceObjType.get(), "Device", "Device", "DeviceObjType")]


@pytest.mark.parametrize("type_, annotation, schema, kind", SAID)
def test_what_types_say(type_, annotation, schema, kind):
    assert type_.annotation_str == str(type_) == repr(type_) == annotation
    if kind is not None:
        assert (type_.str(), type_.kind()) == (schema, kind)


def test_equality_and_identity():
    assert T.ListType(INT) == T.ListType(INT) != T.ListType(FLOAT)
    assert T.IntType.get() is INT is torch.IntType.get()
    assert T.UnionType([INT, STR]) == T.UnionType([STR, INT])
    assert T.UnionType([INT, NONE]) == T.OptionalType(INT) == T.OptionalType(T.OptionalType(INT))


@pytest.mark.parametrize("small, large, holds", [
    (INT, T.NumberType.get(), True), (INT, FLOAT, False), (FLOAT, T.OptionalType(FLOAT), True),
    (NONE, T.OptionalType(FLOAT), True), (INT, T.UnionType([INT, FLOAT]), True),
    (T.TupleType([INT]), T.TupleType([T.NumberType.get()]), True),
    (T.ListType(INT), T.ListType(T.NumberType.get()), False),
    (T.ListType(INT), T.AnyType.get(), True),
    (T.BoolType.get(), T.NumberType.get(), False),
    (T.UnionType([INT, FLOAT]), T.NumberType.get(), True),
    (T.OptionalType(INT), T.UnionType([INT, STR, NONE]), True)])
def test_subtypes(small, large, holds):
    assert small.isSubtypeOf(large) is holds


def test_parts():
    assert T.ListType.ofInts().getElementType() == INT
    assert T.TupleType([INT, FLOAT]).elements() == [INT, FLOAT]
    pairs = T.DictType(STR, INT)
    assert (pairs.getKeyType(), pairs.getValueType()) == (STR, INT)
    assert T.OptionalType(INT).getElementType() == INT
    assert T.unify_type_list([INT, INT]) == INT


def test_the_type_of_one_tensor():
    type_ = T.TensorType.create_from_tensor(torch.ones(2, 3, requires_grad=True))
    assert type_.str() == "Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)"
    assert (type_.sizes(), type_.strides(), type_.dim()) == ([2, 3], [3, 1], 2)
    assert (type_.dtype(), type_.scalarType()) == (torch.float32, "Float")
    assert type_.isSubtypeOf(TENSOR) and not TENSOR.isSubtypeOf(type_) and type_ != TENSOR
    assert type_.with_sizes([4]).strides() == [1] and str(type_) == "Tensor"


def test_refusals():
    for make in (T.IntType, T.Type):
        with pytest.raises(TypeError, match="No constructor defined"):
            make()
    for make in (T.ListType, T.OptionalType):
        with pytest.raises(TypeError, match=r"is made of torch\._C\.Type objects"):
            make(3)
    with pytest.raises(RuntimeError, match="Cannot create dict for key type 'int\\[\\]'"):
        T.DictType(T.ListType(INT), INT)
    with pytest.raises(RuntimeError, match="single type int"):
        T.UnionType([INT, INT])
    with pytest.raises(RuntimeError, match="Could not unify type list since element 1"):
        T.unify_type_list([INT, FLOAT])


class Color(enum.Enum):
    RED = 1


@pytest.mark.parametrize("annotation, said", [
    (int, "int"), (None, "NoneType"), (list[int], "List[int]"), (int | None, "Optional[int]"),
    (tuple[int, float], "Tuple[int, float]"), (dict[str, torch.Tensor], "Dict[str, Tensor]"),
    (torch.nn.Parameter, "Tensor"), (torch.device, "Device"), (torch.dtype, "int"), (Any, "Any"),
    (torch.Generator, "Generator"), (float | int, "Union[float, int]"),
    (torch.jit.Future[int], "Future[int]"), (torch.Stream, "Stream")])
def test_annotations(annotation, said):
    assert str(ann_to_type(annotation, None)) == said


def test_annotations_that_mean_nothing():
    assert try_ann_to_type(object, None) is None
    with pytest.raises(ValueError, match="Unknown type annotation: '<class 'object'>'"):
        ann_to_type(object, None)


def test_signatures():
    def annotated(self, x: torch.Tensor, n: int = 2) -> list[int]:
        pass

    def commented(x, n):
        # type: (Tensor, Optional[int]) -> Tuple[Tensor, int]
        pass
    assert get_signature(annotated, None, None, True) == ([TENSOR, INT], T.ListType(INT))
    assert get_signature(commented, None, None, False) == (
        [TENSOR, T.OptionalType(INT)], T.TupleType([TENSOR, INT]))
    assert get_type_line("def f(x): pass") is None
    with pytest.raises(RuntimeError, match="should not contain calls"):
        parse_type_line("# type: (print(1)) -> int", None, None)
    with pytest.raises(RuntimeError, match="Failed to parse the type line"):
        parse_type_line("# type: (Nothing) -> int", None, None)
