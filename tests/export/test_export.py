"""What can be exported, and how."""
import dataclasses
import io

import pytest
from export_cases import function

import flambeau as torch
from flambeau import nn
from flambeau._dynamo.exc import UserError
from flambeau.export import export, register_dataclass, save


def test_arguments_of_export_are_checked():
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of"):
        export(lambda x: x, (torch.ones(2),))
    with pytest.raises(UserError, match="Expecting `args` to be a tuple of example positional"):
        export(nn.ReLU(), torch.ones(2))
    with pytest.raises(TypeError, match="missing a required argument: 'input'"):
        export(nn.ReLU(), ())
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram', got 'int'"):
        save(3, io.BytesIO())


def test_dataclasses_can_be_inputs():
    @dataclasses.dataclass
    class Pair:
        a: torch.Tensor
        b: torch.Tensor

    register_dataclass(Pair)
    program = function(lambda pair: pair.a + pair.b, Pair(torch.ones(2), torch.ones(2)))
    assert program.module()(Pair(torch.ones(2), torch.zeros(2))).tolist() == [1.0, 1.0]


def test_ops_of_the_program_are_steps():
    with torch.library._scoped_library("export_test", "DEF") as lib:
        lib.define("twice(Tensor x, int n=2) -> (Tensor, Tensor)")
        lib.define("mark() -> ()")
        torch.library.impl(lib, "twice", "CompositeExplicitAutograd")(
            lambda x, n=2: (x * n, x + n))
        torch.library.impl("export_test::mark", "CompositeExplicitAutograd", lambda: None)

        class Net(nn.Module):
            def forward(self, x):
                a, b = torch.ops.export_test.twice(x.sin(), 3)
                torch.ops.export_test.mark()
                return a + torch.ops.export_test.twice.default(b)[0]
        program = torch.export.export(Net(), (torch.ones(2),))
        assert [(node.name, str(node.target), len(node.args)) for node in program.graph.nodes
                if "export_test" in str(node.target)] == [
            ("twice", "export_test.twice.default", 2), ("mark", "export_test.mark.default", 0),
            ("twice_1", "export_test.twice.default", 1)]
        torch.testing.assert_close(program.module()(torch.ones(2)), Net()(torch.ones(2)))
