"""Calls of `torch.ops` that fit no schema, in the words of PyTorch's dispatcher."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flambeau as torch
from flambeau.schema.dispatched import WrongCall, bind

aten, x = torch.ops.aten, torch.ones(2)
NAMES = ["sin", "add", "cat", "native_layer_norm", "relu6", "scatter_add", "mean"]


@pytest.mark.parametrize("call, said", [
    (lambda: aten.relu6(x, 3), r"aten::relu6\(\) expected at most 1 argument\(s\) but received 2 "
     r"argument\(s\). Declaration: aten::relu6\(Tensor self\) -> Tensor"),
    (lambda: aten.add.Tensor(x), r"aten::add\(\) is missing value for argument 'other'. "
     r"Declaration: aten::add.Tensor\(Tensor self, Tensor other, \*, Scalar alpha=1\) -> Tensor"),
    (lambda: aten.add.Tensor(x, x, beta=3), "Unknown keyword argument 'beta' for operator "
     "'aten::add'. Schema: aten::add.Tensor"),
    (lambda: aten.add.Tensor(x, "y"), "Expected a value of type 'Tensor' for argument 'other' but "
     "instead found type 'str'.\nPosition: 1\nValue: 'y'"),
    (lambda: aten.add(x), "Overloaded torch operator invoked from Python failed to match any "
     "schema:\naten::add"),
])
def test_words(call, said):
    with pytest.raises(RuntimeError, match=said):
        call()


@given(st.sampled_from(NAMES), st.integers(0, 2))
def test_unknown_names_fit_no_schema(name, count):
    packet = getattr(aten, name)
    with pytest.raises(RuntimeError, match="aten::"):
        packet(*[x] * count, no_such_argument=1)
    for overload in packet.overloads():
        with pytest.raises(WrongCall):
            bind(getattr(packet, overload)._schema, (x,) * count, {"no_such_argument": 1})


@pytest.mark.parametrize("call, expected", [
    (lambda out: aten.roll(torch.arange(3.0), [1], out=out), [2, 0, 1]),
    (lambda out: aten.add.Scalar_out(x, 1, out=out), [2, 2]),
    (lambda out: aten._foreach_add.Scalar_out([x], 1, out=[out]) or out, [2, 2]),
    (lambda out: aten.new_full.out(x, [2], 3, out=out), [3, 3]),
])
def test_overloads_with_out_that_are_generated(call, expected):
    out = torch.empty(0)
    assert call(out) is out
    assert out.tolist() == expected
