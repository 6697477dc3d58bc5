"""What a schema says of memory."""

import pytest

import flambeau as torch
from flambeau._C import _SchemaArgType, _SchemaArgument, _SchemaInfo

aten = torch.ops.aten


def info_of(overload):
    return _SchemaInfo(overload._schema)


def inputs(index):
    return _SchemaArgument(_SchemaArgType.input, index)


def output(index):
    return _SchemaArgument(_SchemaArgType.output, index)


@pytest.mark.parametrize("overload, written", [
    (aten.sub_.Tensor, {"self"}), (aten.sub.Tensor, set()), (aten.sub.out, {"out"}),
    (aten.transpose.int, set()), (aten.svd.U, {"U", "S", "V"}),
])
def test_what_is_written_to(overload, written):
    info = info_of(overload)
    names = [a.name for a in overload._schema.arguments]
    assert {name for name in names if info.is_mutable(name)} == written
    assert info.is_mutable() is bool(written)


def test_running_statistics_are_written_to_in_training():
    info = info_of(aten.batch_norm.default)
    assert info.is_mutable("running_mean") and info.is_mutable()
    info.add_argument_value("training", False)
    assert not info.is_mutable("running_mean") and not info.is_mutable("running_var")
    info.add_argument_values({"training": True})
    assert info.is_mutable("running_var")


def test_results_may_be_in_the_memory_of_arguments():
    info = info_of(aten.sub_.Tensor)
    assert info.may_alias(inputs(0), output(0)) and not info.may_alias(inputs(1), output(0))
    assert not info_of(aten.sub.Tensor).may_alias(inputs(0), output(0))


def test_parts_of_a_list_may_be_in_the_memory_of_an_argument():
    info = info_of(aten.split.Tensor)
    assert not info.may_alias(inputs(0), output(0))
    assert info.may_contain_alias(inputs(0), output(0))


def test_names_and_places_that_are_not_there():
    info = info_of(aten.sub.Tensor)
    assert info.has_argument("other") and not info.has_argument("weight")
    with pytest.raises(RuntimeError, match="Schema has no argument named weight"):
        info.is_mutable("weight")
    with pytest.raises(RuntimeError, match=r"Invalid index for schema\."):
        info.is_mutable(inputs(9))
