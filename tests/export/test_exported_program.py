"""Exported programs: their text, and the module that they are."""
import pytest
from export_cases import Network, Stateful, function

import flambeau as torch
from flambeau.export import export


def test_a_program_prints_as_pytorchs():
    program = function(lambda x: x.sin(), torch.ones(3))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    assert str(program) == (
        'ExportedProgram:\n    class GraphModule(torch.nn.Module):\n'
        '        def forward(self, x: "f32[3]"):\n'
        '            # No stacktrace found for following nodes\n'
        '            sin: "f32[3]" = torch.ops.aten.sin.default(x);  x = None\n'
        '            return (sin,)\n    \nGraph signature: \n'
        '    # inputs\n    x: USER_INPUT\n    \n    # outputs\n    sin: USER_OUTPUT\n    \n'
        'Range constraints: {}\n')
    assert program.module().code == (
        "\n\n\ndef forward(self, x):\n"
        "    x, = fx_pytree.tree_flatten_spec(([x], {}), self._in_spec)\n"
        "    _guards_fn = self._guards_fn(x);  _guards_fn = None\n"
        "    sin = torch.ops.aten.sin.default(x);  x = None\n"
        "    return pytree.tree_unflatten((sin,), self._out_spec)\n    ")


def test_the_module_is_called_as_the_one_exported():
    model = Stateful()
    program = export(model, (torch.ones(2, 4),))
    module = program.module()
    x = torch.rand(2, 4)
    (first, second), (a, b) = module(x), model(x)
    assert first["n"] == 2 and first["k"] == 3
    torch.testing.assert_close(first["o"], a["o"])
    torch.testing.assert_close(second, b)
    assert set(module.state_dict()) == set(model.state_dict())
    second.sum().backward()
    assert model.lin.weight.grad is not None
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(x)


@pytest.mark.parametrize(("args", "error", "message"), [
    ((torch.ones(3, 4),), AssertionError, r"Guard failed: x.size\(\)\[0\] == 2"),
    ((), ValueError, "Trying to flatten user inputs with exported input tree spec"),
    ((torch.ones(2, 4), torch.ones(1)), ValueError, "Trying to flatten user inputs"),
    ((3,), AttributeError, "'int' object has no attribute 'size'"),
])
def test_inputs_that_were_not_exported_are_refused(args, error, message):
    with pytest.raises(error, match=message):
        export(Stateful(), (torch.ones(2, 4),)).module()(*args)


def test_exporting_changes_neither_state_nor_random_numbers():
    model = Network()
    torch.manual_seed(1)
    program = export(model, (torch.ones(2, 1, 4, 4),))
    drawn = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(3))
    assert model.count == 0 and model.bn.num_batches_tracked == 0
    program.module()(torch.ones(2, 1, 4, 4))
    assert model.count == 1 and model.bn.num_batches_tracked == 1
