"""Exported modules: state, dynamic sizes, guards, files, decompositions, nested modules."""
import dataclasses
import io

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._dynamo.exc import UserError
from flambeau.export import (
    AdditionalInputs,
    Dim,
    ExportedProgram,
    ShapesCollection,
    default_decompositions,
    draft_export,
    export,
    load,
    register_dataclass,
    save,
    unflatten,
)
from flambeau.fx.experimental.symbolic_shapes import (
    ConstraintViolationError,
    GuardOnDataDependentSymNode,
)
from flambeau.nn import functional as F


class Stateful(nn.Module):
    """A parameter, buffers of both kinds, a constant."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)
        self.register_buffer("b", torch.ones(3))
        self.c = torch.ones(3)
        self.register_buffer("np", torch.zeros(3), persistent=False)

    def forward(self, x, y=None, *, z=2.0):
        o = self.lin(x).relu() + self.b + self.c + self.np
        return {"o": o, "n": o.shape[0], "k": 3}, o * z


class Network(nn.Module):
    """Layers with state that changes when they run."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        x = F.max_pool2d(F.gelu(self.bn(self.conv(x))), 2)
        return x.flatten(1).view(x.size(0), -1), x.reshape(x.shape[0], -1)


def function(f, *args, **options):
    class Module(nn.Module):
        def forward(self, x, y=None):
            return f(x) if y is None else f(x, y)
    return export(Module(), args, **options)


def test_the_graph_and_its_signature_are_pytorchs():
    program = export(Stateful(), (torch.ones(2, 4),))
    assert [str(node) for node in program.graph.nodes] == [
        "p_lin_weight", "p_lin_bias", "b_b", "b_np", "c_c", "x", "linear", "relu", "add", "add_1",
        "add_2", "mul", "output"]
    assert str(program.graph_signature) == """
# inputs
p_lin_weight: PARAMETER target='lin.weight'
p_lin_bias: PARAMETER target='lin.bias'
b_b: BUFFER target='b' persistent=True
b_np: BUFFER target='np' persistent=False
c_c: CONSTANT_TENSOR target='c'
x: USER_INPUT

# outputs
add_2: USER_OUTPUT
: USER_OUTPUT
: USER_OUTPUT
mul: USER_OUTPUT
"""
    assert list(program.state_dict) == ["lin.weight", "lin.bias", "b"]
    assert sorted(program.constants) == ["c", "np"]
    assert [n for n, _ in program.named_parameters()] == ["lin.weight", "lin.bias"]
    assert [n for n, _ in program.named_buffers()] == ["b", "np"]
    assert [e.fqn for e in program.module_call_graph] == ["", "lin"]
    program.validate()


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


# ---- dynamic sizes ------------------------------------------------------------------------------

def test_dynamic_sizes_become_symbols():
    program = export(Network(), (torch.ones(2, 1, 4, 4),),
                     dynamic_shapes={"x": {0: Dim("batch", min=2, max=100)}})
    assert str(program.range_constraints) == "{s77: VR[2, 100]}"
    sizes = {str(n): n.meta["sizes"] for n in program.graph.nodes if "sizes" in n.meta}
    assert str(sizes["x"]) == "(s77, 1, 4, 4)"
    assert str(sizes["view"]) == "(s77, 8)"
    module = program.module()
    for batch in (1, 3, 100):
        assert [r.shape[0] for r in module(torch.ones(batch, 1, 4, 4))] == [batch, batch]
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] <= 100"):
        module(torch.ones(101, 1, 4, 4))


def test_numbers_made_of_sizes_are_computed_in_the_graph():
    def f(x, y):
        rows, columns = x.shape
        return (x.view(rows, -1), torch.ones(rows * 2), x + y, torch.arange(rows),
                torch.zeros(rows * columns),
                torch.ones(columns // 2), x.new_zeros(rows - 1), rows + columns)
    shape = {0: Dim("n", min=2), 1: Dim("m", min=2)}
    program = function(f, torch.ones(3, 4), torch.ones(3, 4), dynamic_shapes=(shape, shape))
    module = program.module()
    for n, m in ((5, 8), (7, 2), (2, 6)):
        x = torch.rand(n, m)
        for found, wanted in zip(module(x, x), f(x, x)):
            assert torch.equal(found, wanted) if isinstance(wanted, torch.Tensor) \
                else found == wanted
    assert {str(n.meta["val"]) for n in program.graph.nodes
            if not isinstance(n.meta.get("val", n), (torch.Tensor, type(n)))} >= {"2*s17", "s17"}


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


def test_courses_that_depend_on_sizes_are_refused():
    def f(x):
        return x + 1 if x.shape[0] > 5 else x - 1
    with pytest.raises(UserError, match=r"Constraints violated \(n\)"):
        function(f, torch.ones(3), dynamic_shapes=({0: Dim("n")},))
    assert function(f, torch.ones(3), dynamic_shapes=({0: Dim("n", max=5)},))


@pytest.mark.parametrize(("shapes", "error", "message"), [
    ({"z": None}, UserError, r"its top-level keys must be the arg names \['x', 'y'\]"),
    (({0: Dim("n")},), UserError, "`inputs` has 2 elements, but `dynamic_shapes` has 1"),
    ({"x": {0: Dim("n", max=2)}, "y": None}, ConstraintViolationError, "3 not in range"),
    ({"x": {0: 5}, "y": None}, UserError, "Static shape constraint of 5 does not match"),
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


# ---- what cannot be exported --------------------------------------------------------------------

@pytest.mark.parametrize("f", [lambda x: x + 1 if x.sum() > 0 else x - 1,
                               lambda x: x * x.sum().item(), lambda x: x[int(x[0])]])
def test_values_may_not_decide(f):
    with pytest.raises(GuardOnDataDependentSymNode, match="Could not guard on data-dependent"):
        function(f, torch.ones(2))


def test_sizes_that_depend_on_values_stay_in_tensors():
    x = torch.tensor([1.0, -2.0, 3.0])
    module = function(lambda x: x[x > 0].sum(), x).module()
    assert module(torch.tensor([-1.0, 5.0, -1.0])) == 5.0
    with pytest.raises(GuardOnDataDependentSymNode, match="size depends on the values"):
        function(lambda x: x / x[x > 0].shape[0], x)


def test_arguments_of_export_are_checked():
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of"):
        export(lambda x: x, (torch.ones(2),))
    with pytest.raises(UserError, match="Expecting `args` to be a tuple of example positional"):
        export(nn.ReLU(), torch.ones(2))
    with pytest.raises(TypeError, match="missing a required argument: 'input'"):
        export(nn.ReLU(), ())
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram', got 'int'"):
        save(3, io.BytesIO())


# ---- decompositions -----------------------------------------------------------------------------

def test_decompositions_write_to_nothing():
    model = Network()
    program = export(model, (torch.ones(2, 1, 4, 4),), dynamic_shapes=({0: Dim("n", min=2)},))
    core = program.run_decompositions()
    assert core.dialect == "ATEN"
    names = [n.target.__name__ for n in core.graph.nodes if n.op == "call_function"]
    assert names[:3] == ["sym_size.int", "add.Tensor", "convolution.default"]
    assert not any(name.partition(".")[0].endswith("_") for name in names)
    assert list(core.graph_signature.buffers_to_mutate.values()) == [
        "count", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]
    x = torch.rand(5, 1, 4, 4)
    before = model.bn.running_mean.clone()
    found = core.module()(x)
    assert model.count == 1 and not torch.equal(before, model.bn.running_mean)
    model.count.zero_()
    torch.testing.assert_close(found, model(x))


def test_tables_of_decompositions_can_be_changed():
    program = export(nn.Linear(4, 2), (torch.ones(1, 4),))
    linear = torch.ops.aten.linear.default
    table = default_decompositions()
    assert [n.target.__name__ for n in program.run_decompositions().graph.nodes
            if n.op == "call_function"] == ["permute.default", "addmm.default"]
    del table[linear]
    assert program.run_decompositions(table).graph.find_nodes(op="call_function", target=linear)
    table[linear] = lambda x, weight, bias: (x @ weight.T) + bias
    program.run_decompositions(table).module()(torch.ones(1, 4))


# ---- files and nested modules -------------------------------------------------------------------

def test_saved_programs_are_the_same(tmp_path):
    program = export(Stateful(), (torch.ones(2, 4),), {"z": 3.0},
                     dynamic_shapes={"x": {0: Dim("n", min=2, max=9)}, "z": None})
    save(program, tmp_path / "program.pt2", extra_files={"note": "hello"})
    extra = {"note": ""}
    found = load(tmp_path / "program.pt2", extra_files=extra)
    assert isinstance(found, ExportedProgram) and extra == {"note": "hello"}
    assert str(found) == str(program)
    x = torch.rand(7, 4)
    torch.testing.assert_close(found.module()(x, z=3.0)[1], program.module()(x, z=3.0)[1])
    assert str(found.run_decompositions().range_constraints) == "{s77: VR[2, 9]}"


def test_what_no_archive_holds_is_an_error(tmp_path):
    import zipfile
    with zipfile.ZipFile(tmp_path / "x.pt2", "w") as archive:
        archive.writestr("x/other", b"")
    with pytest.raises(RuntimeError, match="holds no exported program"):
        load(tmp_path / "x.pt2")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.pt2")


def test_unflattened_programs_have_the_modules_of_the_original():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU())

        def forward(self, x):
            return self.b(self.a(x)) + self.a.weight

    model = Model()
    found = unflatten(export(model, (torch.ones(2, 2),)))
    assert repr(found) == """UnflattenedModule(
  (a): InterpreterModule()
  (b): InterpreterModule(
    (0): InterpreterModule()
    (1): InterpreterModule()
  )
)"""
    x = torch.rand(2, 2)
    torch.testing.assert_close(found(x), model(x))
    assert list(found.state_dict()) == list(model.state_dict())
    assert [str(n) for n in found.graph.nodes] == ["x", "a_weight", "a", "b", "add", "output"]


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
