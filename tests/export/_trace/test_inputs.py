"""The inputs of a program, and the sizes that may differ."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau._dynamo.exc import UserError
from flambeau.export import Dim, export
from flambeau.fx.experimental.symbolic_shapes import ConstraintViolationError


class Two(nn.Module):
    def forward(self, x, pair, *rest, scale=2.0):
        return x * scale + pair["a"] + sum(rest)


class Plain(nn.Module):
    def forward(self, x, pair, rest=None):
        return x + pair["a"]


def exported(shapes=None, **options):
    args = torch.ones(3, 2), {"a": torch.ones(3, 2)}
    return export(Two(), args, options, dynamic_shapes=shapes)


def names(program):
    return [spec.arg.name for spec in program.graph_signature.input_specs]


def test_inputs_are_named_after_the_arguments():
    assert names(exported()) == ["x", "pair_a"]
    assert names(exported(scale=3.0)) == ["x", "pair_a", "scale"]
    program = export(Two(), (torch.ones(2), {"a": torch.ones(2)}, torch.ones(2), torch.ones(2)))
    assert names(program) == ["x", "pair_a", "rest_0", "rest_1"]


def test_equal_names_are_equal_sizes():
    n = Dim("n")
    program = exported({"x": {0: n}, "pair": {"a": {0: n}}})
    assert len(program.range_constraints) == 1
    x = torch.ones(5, 2)
    assert program.module()(x, {"a": x}).shape == (5, 2)


def test_sizes_made_of_others():
    class Cat(nn.Module):
        def forward(self, x, y):
            return x + y[1:]
    n = Dim("n")
    program = export(Cat(), (torch.ones(3), torch.ones(4)), dynamic_shapes=({0: n}, {0: n + 1}))
    assert program.module()(torch.ones(6), torch.ones(7)).shape == (6,)


@pytest.mark.parametrize("shapes, message", [
    ({"x": {0: Dim("n")}}, "top-level keys must be the arg names"),
    (({0: Dim("n")},), "inputs` has .* elements, but `dynamic_shapes` has 1 elements"),
    ({"x": (Dim("n"),), "pair": {"a": None}, "rest": None},
     "same length as the actual tensor shape")])
def test_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(UserError, match=message):
        export(Plain(), (torch.ones(3, 2), {"a": torch.ones(3, 2)}, None), dynamic_shapes=shapes)


def test_sizes_that_are_said_to_be_fixed():
    with pytest.raises(ConstraintViolationError, match="Static shape constraint of 4 does not "
                                                       r"match input size of 3, for L\['x'\]"):
        export(Plain(), (torch.ones(3, 2), {"a": torch.ones(3, 2)}, None),
               dynamic_shapes={"x": {0: 4}, "pair": {"a": None}, "rest": None})
