"""Ops that do not do what their schemas say are found."""
import pytest

import flambeau as torch
from flambeau._subclasses.schema_check_mode import (
    Aliasing,
    Mutation,
    SchemaCheckMode,
    is_iterable_of_tensors,
)


@pytest.fixture(scope="module")
def wrong():
    library = torch.library.Library("schema_check_mode", "DEF")
    for text, body in [
            ("sub(Tensor self) -> Tensor", lambda x: x.sub_(1).clone()),
            ("view(Tensor self) -> Tensor", lambda x: x.view(-1)),
            ("twice(Tensor self) -> (Tensor, Tensor)", lambda x: (x := x.clone(), x[:]))]:
        library.define(text)
        library.impl(text.partition("(")[0], body, "CPU")
    yield torch.ops.schema_check_mode
    library._destroy()


@pytest.mark.parametrize("name, said", [
    ("sub", "Argument input is not defined as mutable but was mutated"),
    ("view", "Argument input is not defined to alias output but was aliasing"),
    ("twice", "Outputs 0 and 1 alias unexpectedly")])
def test_what_schemas_do_not_say(wrong, name, said):
    with pytest.raises(RuntimeError, match=said), SchemaCheckMode():
        getattr(wrong, name)(torch.rand(2, 2))


def test_what_was_seen(capsys):
    x = torch.rand(2, 2)
    with SchemaCheckMode() as mode:
        x.add_(1)
        x.view(-1).sin()
        torch.split(x, 1)
        x.resize_(1)
        torch.nn.functional.linear(torch.rand(2, 2), torch.rand(2, 2))
        torch.full((2,), float("nan")) + 1
    assert mode.mutated == [Mutation("aten::add_", "input"), Mutation("aten::resize_", "input")]
    assert Aliasing("aten::view", "input", "output_0") in mode.aliasing
    assert Aliasing("aten::split", "input", "output_0") in mode.aliasing
    assert mode.ops[:3] == ["aten::add_", "aten::view", "aten::sin"]
    mode.display_ops()
    assert "aten::resize_" in capsys.readouterr().out
    mode.reset_cache()
    assert mode.ops == []


def test_several_tensors():
    x = torch.ones(1)
    assert is_iterable_of_tensors([x])
    assert not any(map(is_iterable_of_tensors, ([x, 1], [], x, "a", 3)))


def test_schemas_and_the_values_of_a_call():
    from flambeau._C import _SchemaArgType, _SchemaArgument, _SchemaInfo
    aten, x = torch.ops.aten, torch.ones(2)
    first, second, result = [_SchemaArgument(kind, i) for kind, i in (
        (_SchemaArgType.input, 0), (_SchemaArgType.input, 1), (_SchemaArgType.output, 0))]
    info = _SchemaInfo(aten.sub_.Tensor._schema)
    assert info.is_mutable() and info.is_mutable("self") and not info.is_mutable("other")
    assert info.may_alias(first, result) and not info.may_alias(first, second)
    info.add_argument_values({"self": x, "other": x[:]})
    assert info.may_alias(first, second) and info.is_mutable("other")
    assert info.may_alias(second, result)
    with pytest.raises(RuntimeError, match="Schema has no argument named nope"):
        info.is_mutable("nope")
    info = _SchemaInfo(aten.split.Tensor._schema)
    assert not info.may_alias(first, result) and info.may_contain_alias(first, result)
    info = _SchemaInfo(aten.batch_norm.default._schema)
    assert info.is_mutable("running_var")
    info.add_argument_value("training", False)
    assert not info.is_mutable("running_var")
