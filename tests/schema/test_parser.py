"""Schemas as data."""
import re
from pathlib import Path

import pytest

from flambeau.schema.parser import MISSING, TYPES, check_types, parse


def test_types_marks_and_defaults():
    schema = parse("sum.dim_IntList(Tensor self, SymInt[1]? dim, bool keepdim=False, *, "
                   "ScalarType? dtype=None) -> Tensor")
    assert (schema.name, schema.overload, schema.full_name) == (
        "sum", "dim_IntList", "sum.dim_IntList")
    self, dim, keepdim, dtype = schema.parameters
    assert self.is_tensor and not self.is_list and self.value is MISSING
    assert (dim.kind, dim.size, dim.nullable, dim.is_symbolic) == ("int", 1, True, True)
    assert keepdim.value is False and not keepdim.by_name
    assert dtype.by_name and dtype.nullable and dtype.value is None


@pytest.mark.parametrize("text, size, value", [
    ("int[2] padding=0", 2, (0, 0)), ("int[] dim=[]", 0, ()), ("int[2] dim=[-2,-1]", 2, (-2, -1)),
    ("float eps=1e-05", -1, 1e-05), ("float p=2", -1, 2.0), ("str reduce=\"mean\"", -1, "mean"),
    ("int reduction=Mean", -1, 1), ("Scalar alpha=1", -1, 1), ("float limit=inf", -1, float("inf")),
])
def test_defaults_as_objects(text, size, value):
    parameter, = parse(f"f({text}) -> ()").parameters
    assert parameter.size == size and parameter.value == value
    assert type(parameter.value) is type(value)


def test_memory():
    view = parse("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
    assert view.is_view and view.parameters[0].alias == "a" and view.results[0].is_list
    out = parse("max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, "
                "Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)")
    assert [p.name for p in out.outs] == ["max", "max_values"] and not out.is_view
    assert out.result_names == ("values", "indices") and not out.is_inplace


def test_lists_of_optional_tensors():
    indices = parse("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor").parameters[1]
    assert indices.nullable_items and not indices.nullable and indices.is_list


def test_factories():
    options = ("*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None")
    assert parse(f"zeros(SymInt[] size, {options}) -> Tensor").is_factory
    assert not parse("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor").is_factory


def test_what_is_no_schema():
    with pytest.raises(ValueError, match=re.escape("expected a schema like 'name(Tensor x, int "
                                                   "n=2) -> Tensor', got 'sum'")):
        parse("sum")


@pytest.mark.parametrize("text, said", [
    ("f(Tenser self) -> Tensor", "f: 'Tenser' is no type; did you mean 'Tensor'?"),
    ("f.dim(Tensor self, itn[2]? dim=[0, 1]) -> Tensor", "f.dim: 'itn' is no type; did you mean "
                                                         "'int'?"),
    ("f(Tensor self, *, dtype x=None) -> ()", "f: 'dtype' is no type"),
    ("f(Tensor self) -> (Tensor values, tensor indices)", "'tensor' is no type; did you mean "
                                                          "'Tensor'?"),
    ("f(Tensor self) -> Flow", "'Flow' is no type"),
])
def test_a_type_that_is_none(text, said):
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        check_types(text)
    assert f"In the schema '{text}' a type is one of Tensor, Scalar, int" in str(caught.value)


@pytest.mark.parametrize("text", [
    "unsafe_split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    "f(Tensor(a!) self, int[2] x=[1, 1], Tensor?[] y=[], *, Layout? z=None) -> (Tensor, Tensor)",
    "g() -> ()", *[f"h({kind} x, {kind}[] y) -> {kind}" for kind in TYPES]])
def test_types_that_are_some(text):
    check_types(text)


def test_the_documentation_lists_the_types():
    path = Path(__file__).parents[2] / "docs" / "operations.md"
    table = path.read_text(encoding="utf-8").partition("| type |")[2].partition("\n\n")[0]
    listed = [name for row in table.splitlines() if row.startswith("| `")
              for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(TYPES)
