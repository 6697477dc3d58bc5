"""How files write parts of graphs."""
import operator

import pytest

import flambeau as torch
from flambeau.export._archive import notation
from flambeau.export._trace.sizes import Expression, Symbol

N, M = Symbol("s1", 3), Symbol("s2", 5)


@pytest.mark.parametrize("value", [
    N, Expression(((2, (N,)),)), Expression(((1, (N,)), (4, ()))), Expression(((3, (N, M)),)),
    Expression(((1, (N,)), (1, (M,))), 2)])
def test_sizes_there_and_back(value):
    written = notation.size_json(value)["as_expr"]
    found = notation.parse_expression(written["expr_str"], {"s1": 3, "s2": 5})
    sizes = {N: 7, M: 9}

    def number(v):
        return sizes[v] if isinstance(v, Symbol) else v.value(sizes)
    assert number(found) == number(value) and written["hint"] == {"as_int": value.hint}


def test_plain_sizes_and_names():
    assert notation.size_json(4) == {"as_int": 4}
    assert notation.size_json(N)["as_expr"]["expr_str"] == \
        "Symbol('s1', positive=True, integer=True)"


@pytest.mark.parametrize("text", ["Pow(Symbol('s0'), Integer(2))", "__import__('os')", "s0",
                                  "FloorDiv(Symbol('s0'), Symbol('s1'))"])
def test_other_expressions_are_refused(text):
    with pytest.raises(NotImplementedError, match=r"export.load: the size"):
        notation.parse_expression(text, {})


@pytest.mark.parametrize("value, written", [
    (None, {"as_none": True}), (True, {"as_bool": True}), (3, {"as_int": 3}),
    (2.5, {"as_float": 2.5}), ("x", {"as_string": "x"}), ([1, 2], {"as_ints": [1, 2]}),
    ([], {"as_ints": []}), ([1, 2.5], {"as_floats": [1.0, 2.5]}),
    ((True, False), {"as_bools": [True, False]}), (1 + 2j, {"as_complex": {"real": 1.0,
                                                                          "imag": 2.0}}),
    (torch.float32, {"as_scalar_type": 7}), (torch.int64, {"as_scalar_type": 5}),
    (torch.device("cpu"), {"as_device": {"type": "cpu", "index": None}}),
    (torch.channels_last, {"as_memory_format": 2}), (torch.strided, {"as_layout": 7})])
def test_arguments(value, written):
    assert notation.argument_json(value) == written


def test_arguments_of_other_types_are_refused():
    with pytest.raises(NotImplementedError, match="an argument of type set"):
        notation.argument_json({1})


def test_functions():
    assert notation.function_of("_operator.mul") is operator.mul
    assert notation.function_of("torch.ops.aten.add.Tensor") is torch.ops.aten.add.Tensor
    with pytest.raises(NotImplementedError, match=r"export.load: the op os.system"):
        notation.function_of("os.system")


def test_types_have_numbers_both_ways():
    assert all(notation.DTYPE_OF[n] is dtype for dtype, n in notation.DTYPE_NUMBERS.items())
    found = notation.tensor_json(torch.ones(2, 3).t())
    assert found["sizes"] == [{"as_int": 3}, {"as_int": 2}]
    assert found["strides"] == [{"as_int": 1}, {"as_int": 3}]
