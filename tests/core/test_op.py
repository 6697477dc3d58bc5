"""The table of ops, and what an op says of its arguments."""
import pytest

import flambeau as torch
from flambeau.core.op import Op, Table, class_name, is_passive, module_of, table


def test_the_table_makes_an_op_when_it_is_looked_for():
    made = []
    own = Table()
    own.declared["square"] = lambda: made.append("square") or Op("square", "pointwise")
    assert "square" in own and len(own) == 1 and made == []
    assert own["square"] is own["square"] and made == ["square"]
    own.declared["cube"] = lambda: Op("cube", "pointwise")
    assert sorted(own) == ["cube", "square"] and own.get("root") is None
    del own["cube"]
    assert "cube" not in own
    with pytest.raises(KeyError, match="cube"):
        own["cube"]


def test_deleting_what_was_never_made():
    own = Table()
    own.declared["square"] = lambda: pytest.fail("made")
    del own["square"]
    assert len(own) == 0


@pytest.mark.parametrize("name, node", [
    ("add", "AddBackward0"), ("floor_divide", "FloorDivideBackward0"), ("relu_", "ReluBackward0")])
def test_names_of_nodes(name, node):
    assert class_name(name) == node


@pytest.mark.parametrize("namespace, module", [
    ("torch", "flambeau"), ("linalg", "flambeau._C._linalg"), ("_nn", "flambeau._C._nn")])
def test_modules(namespace, module):
    assert module_of(namespace) == module


def test_inputs_are_the_tensors_among_canonical_arguments():
    x, y = torch.ones(2), torch.zeros(2)
    add = table["add.Tensor"] if "add.Tensor" in table else table["add"]
    assert add.inputs((x, y, 1)) == (x, y)
    assert add.with_inputs((x, y, 1), (y, x)) == (y, x, 1)
    cat = table["cat"]
    assert cat.variadic and cat.inputs(((x, y), 0)) == (x, y)
    assert cat.with_inputs(((x, y), 0), [y]) == ((y,), 0)


def test_differentiable_ops():
    assert table["exp"].is_differentiable and table["sort"].is_differentiable
    assert not table["argmax"].is_differentiable


def test_what_overrides_no_function():
    assert is_passive((int, float, torch.Tensor, slice)) and not is_passive((int, list))
