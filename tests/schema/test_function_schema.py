"""Schemas as `torch._C` shows them: arguments, defaults, memory, and calls put in order."""
import pytest

import flambeau
from flambeau.schema.function_schema import FunctionSchema, parse_schema, parse_type

X = flambeau.ones(2)
TEXT = "sum.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"


def test_parts():
    schema = FunctionSchema(TEXT)
    assert (schema.name, schema.overload_name) == ("aten::sum", "dim")
    assert [a.name for a in schema.arguments] == ["self", "dim", "keepdim", "dtype"]
    assert [a.has_default_value() for a in schema.arguments] == [False, False, True, True]
    assert schema.arguments[1].N == 1 and schema.arguments[3].kwarg_only
    assert str(schema) == f"aten::{TEXT}" and not schema.is_mutable


def test_memory():
    schema = FunctionSchema("add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
    assert schema.is_mutable and schema.arguments[0].is_write
    assert not schema.arguments[1].alias_info
    out = FunctionSchema("abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").arguments[1]
    assert out.is_out


def test_results():
    schema = FunctionSchema("max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)")
    assert [r.name for r in schema.returns] == ["values", "indices"]
    assert FunctionSchema("f(Tensor self) -> ()").returns == []


def test_defaults_are_left_out_of_calls():
    schema = FunctionSchema(TEXT)
    assert schema.arranged(["x", (0,), False, None]) == (["x", [0]], {})
    assert schema.arranged(["x", None, True, "f8"]) == (["x", None, True], {"dtype": "f8"})
    assert schema.bound(["x", [0]], {"dtype": "f8"}) == ["x", [0], False, "f8"]


@pytest.mark.parametrize("text,said", [
    ("sum", "only the operator name was given"), ("sum(Tensor x)", "expected arrow"),
    ("(Tensor -> x", "expected a schema like")])
def test_what_is_no_schema(text, said):
    with pytest.raises(RuntimeError, match=said):
        parse_schema(text)


def test_defaults_are_written_as_pytorch_writes_them():
    given = "f(Tensor x, float a=0.1, float b=2.0, float c=1e-5, float d=3, int[] e=[1,2], " \
            "float[] g=[1.0,0.5], str s='x', Scalar n=1, Scalar m=2.0, *, bool q=True) -> Tensor"
    assert str(FunctionSchema(given, "own")) == (
        "own::f(Tensor x, float a=0.10000000000000001, float b=2., "
        "float c=1.0000000000000001e-05, float d=3., int[] e=[1, 2], float[] g=[1., 0.5], "
        'str s="x", Scalar n=1, Scalar m=2., *, bool q=True) -> Tensor')


@pytest.mark.parametrize("args, kwargs, exact", [
    ((X, [0]), {}, True), ((X, (0, 1), True), {}, True), ((X, None), {}, True),
    ((X, [0]), {"dtype": flambeau.float32}, True), ((), {"self": X, "dim": [0]}, True),
    ((X, 0), {}, False), ((X, [2 ** 63]), {}, False), ((X, [True]), {}, False),
    ((X, [0], 1), {}, False), ((X,), {}, False), ((X, [0], True, None), {}, False),
    ((X, [0]), {"dim": [0]}, False), ((X, [0]), {"axis": 0}, False), ((None, [0]), {}, False)])
def test_calls_that_need_no_conversion(args, kwargs, exact):
    assert FunctionSchema(TEXT).takes_exactly(args, kwargs) is exact


# type, shown, written with real types, kind and kind of the real one: recorded from PyTorch 2.13
@pytest.mark.parametrize("declared, shown, written, kind, real_kind", [
    ("Tensor(a!)[]", "List[Tensor]", "Tensor[]", "ListType", "ListType"),
    ("SymInt", "int", "SymInt", "IntType", "SymIntType"),
    ("SymInt[2]?", "Optional[List[int]]", "SymInt[]?", "OptionalType", "OptionalType"),
    ("Layout", "int", "Layout", "IntType", "LayoutType"),
    ("ScalarType", "int", "ScalarType", "IntType", "ScalarTypeType"),
    ("QScheme", "QScheme", "QScheme", "QSchemeType", "QSchemeType"),
    ("SymBool", "bool", "SymBool", "BoolType", "SymBoolType"),
    ("Scalar[]", "List[number]", "Scalar[]", "ListType", "ListType"),
    ("Tensor?[]", "List[Optional[Tensor]]", "Tensor?[]", "ListType", "ListType"),
    ("Generator", "Generator", "Generator", "GeneratorType", "GeneratorType"),
    ("Future(Tensor)", "Future[Tensor]", "Future[Tensor]", "FutureType", "FutureType"),
    ("Dict(str, t)", "Dict[str, t]", "Dict(str, t)", "DictType", "DictType"),
    ("t", "t", "t", "VarType", "VarType"), ("bool[3]", "List[bool]", "bool[]", "ListType",
                                            "ListType"),
    ("__torch__.torch.classes.c10d.Work", *["__torch__.torch.classes.c10d.Work"] * 2, "ClassType",
     "ClassType")])
def test_types_of_arguments(declared, shown, written, kind, real_kind):
    argument = parse_schema(f"f({declared} x) -> ()")[1][0]
    assert repr(argument.type) == argument.type.annotation_str == shown
    assert (argument.real_type.str(), argument.type.kind(), argument.real_type.kind()) == (
        written, kind, real_kind)


def test_results_that_hold_commas():
    returns = FunctionSchema("f() -> (Dict(str, t) a, (int, float) b)").returns
    assert [(r.name, str(r.type)) for r in returns] == [
        ("a", "Dict[str, t]"), ("b", "Tuple[int, float]")]


def test_types_of_schemas_are_those_of_torchscript():
    found = parse_type("int[]?")
    assert found == flambeau.OptionalType(flambeau.ListType.ofInts())
    assert isinstance(found, flambeau.OptionalType) and parse_type("int") is flambeau.IntType.get()
