"""Binding by the rules of PyTorch's dispatcher."""
import pytest

from flambeau.schema.dispatched import WrongCall, bind
from flambeau.schema.function_schema import MISSING, FunctionSchema

SUM = FunctionSchema("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, "
                     "ScalarType? dtype=None) -> Tensor")


def test_values_come_in_the_order_of_the_schema():
    assert bind(SUM, (None,), {"keepdim": 1, "dim": 0}) == [None, [0], True, MISSING]


@pytest.mark.parametrize("args, kwargs, said", [
    ((None, [0], True, 6), {}, r"aten::sum\(\) takes 3 positional argument\(s\) but 4 was/were"),
    ((None,) * 5, {}, r"aten::sum\(\) expected at most 4 argument\(s\) but received 5"),
    ((None,), {}, r"aten::sum\(\) is missing value for argument 'dim'. Declaration: aten::sum"),
    ((None, 0), {"foo": 1}, "Unknown keyword argument 'foo' for operator 'aten::sum'. Schema"),
    ((None, 0), {"dim": 1}, "Argument 'dim' specified both as positional and keyword argument"),
    ((None, 0.5), {}, r"aten::sum\(\) Expected a value of type 'Optional\[List\[int\]\]' for "
     "argument 'dim' but instead found type 'float'.\nPosition: 1\nValue: 0.5\nDeclaration"),
    ((None, 0), {"dtype": "float32"}, "'Optional.int.' for argument 'dtype' but instead found "
     "type 'str'.\nPosition: 3\n"),
])
def test_words(args, kwargs, said):
    with pytest.raises(WrongCall, match=said):
        bind(SUM, args, kwargs)
