"""Sizes that vary: names, ranges, relations, and what is wrong with them."""
import pytest
from export_cases import function

import flambeau as torch
from flambeau import nn
from flambeau._dynamo.exc import UserError
from flambeau.export import AdditionalInputs, Dim, ShapesCollection, draft_export, export
from flambeau.fx.experimental.symbolic_shapes import ConstraintViolationError


def test_sizes_of_one_name_are_equal():
    n = Dim("n")
    module = function(torch.add, torch.ones(3, 4), torch.ones(3, 4),
                      dynamic_shapes=({0: n}, {0: n})).module()
    with pytest.raises(AssertionError, match=r"Guard failed: y.size\(\)\[0\] == x.size\(\)\[0\]"):
        module(torch.ones(2, 4), torch.ones(3, 4))
    with pytest.raises(UserError, match=r"The values of m = .* and n = .* must always be equal"):
        function(torch.add, torch.ones(3, 4), torch.ones(3, 4),
                 dynamic_shapes=({0: n}, {0: Dim("m")}))


def test_derived_sizes():
    n = Dim("n", min=2)
    program = function(lambda x, y: x + y[::2], torch.ones(3), torch.ones(6),
                       dynamic_shapes=({0: n}, {0: 2 * n}))
    module = program.module()
    assert module(torch.ones(5), torch.ones(10)).shape == (5,)
    with pytest.raises(AssertionError, match="Guard failed"):
        module(torch.ones(5), torch.ones(9))


def test_hints_let_the_program_decide():
    def f(x, y):
        return x.view(-1), x + y, y.view(3, 4)
    auto = {0: Dim.AUTO}
    assert function(f, torch.ones(3, 4), torch.ones(3, 4),
                    dynamic_shapes=(auto, auto)).range_constraints == {}
    program = function(torch.add, torch.ones(3, 4), torch.ones(3, 4),
                       dynamic_shapes=(auto, {0: Dim.DYNAMIC}))
    assert str(program.range_constraints) == "{s17: VR[2, int_oo]}"
    with pytest.raises(UserError, match="specialized it to be a constant"):
        function(lambda x: x.view(12), torch.ones(3, 4), dynamic_shapes=({0: Dim.DYNAMIC},))
    found = draft_export(nn.Flatten(0), (torch.ones(3, 4),), dynamic_shapes=({0: Dim("n")},))
    assert str(found.graph_signature.user_outputs) == "('flatten',)"


@pytest.mark.parametrize(("shapes", "error", "message"), [
    ({"z": None}, UserError, r"its top-level keys must be the arg names \['x', 'y'\]"),
    (({0: Dim("n")},), UserError, "`inputs` has 2 elements, but `dynamic_shapes` has 1"),
    ({"x": {0: Dim("n", max=2)}, "y": None}, ConstraintViolationError, "3 not in range"),
    ({"x": {0: 5}, "y": None}, ConstraintViolationError,
     "Static shape constraint of 5 does not match"),
])
def test_what_is_wrong_with_dynamic_shapes(shapes, error, message):
    with pytest.raises(error, match=message):
        function(torch.add, torch.ones(3), torch.ones(3), dynamic_shapes=shapes)


def test_sizes_by_tensor_and_by_further_examples():
    x, y = torch.ones(3, 2), torch.ones(3, 2)

    class Nested(nn.Module):
        def forward(self, pair):
            return pair["a"] + pair["b"][0]
    inputs = ({"a": x, "b": [y]},)
    collection = ShapesCollection()
    collection[x] = collection[y] = {0: Dim("n")}
    more = AdditionalInputs()
    more.add(({"a": torch.ones(4, 2), "b": [torch.ones(4, 2)]},))
    for shapes in (collection, more):
        program = export(Nested(), inputs, dynamic_shapes=shapes)
        assert program.graph_signature.user_inputs == ("pair_a", "pair_b_0")
        wide = {"a": torch.ones(9, 2), "b": [torch.ones(9, 2)]}
        assert program.module()(wide).shape == (9, 2)


def test_dims_print_and_combine(recorded_dims):
    for text, wanted in recorded_dims.items():
        assert repr(eval(text, {"Dim": Dim})) == wanted
    with pytest.raises(NotImplementedError, match="Only increasing linear operations"):
        Dim("x") * Dim("y")
    with pytest.raises(AssertionError, match="inconsistent min=5, max=2"):
        Dim("x", min=5, max=2)


@pytest.fixture
def recorded_dims():
    import json
    from pathlib import Path
    return json.loads((Path(__file__).parents[1] / "data" / "export.json").read_text())["dims"]
