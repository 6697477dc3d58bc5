"""The graph of a program."""
import operator

import pytest
from export_cases import Stateful, function

import flambeau as torch
from flambeau.export import Dim, export
from flambeau.export.graph_signature import ConstantArgument, InputKind


def test_inputs_are_in_order():
    program = export(Stateful(), (torch.ones(2, 4),))
    found = [(s.kind, s.arg.name, s.target) for s in program.graph_signature.input_specs]
    assert found == [
        (InputKind.PARAMETER, "p_lin_weight", "lin.weight"),
        (InputKind.PARAMETER, "p_lin_bias", "lin.bias"), (InputKind.BUFFER, "b_b", "b"),
        (InputKind.BUFFER, "b_np", "np"), (InputKind.CONSTANT_TENSOR, "c_c", "c"),
        (InputKind.USER_INPUT, "x", None)]
    assert {"lin.weight", "lin.bias", "b"} <= set(program.state_dict)
    assert set(program.constants) == {"np", "c"}


def test_results_are_described():
    program = function(lambda x: (x.sum(1), 3, None, "text"), torch.ones(2, 3))
    node, *_ = (n for n in program.graph.nodes if n.op == "call_function")
    assert node.meta["val"].shape == (2,)
    specs = program.graph_signature.output_specs
    assert [type(s.arg) is ConstantArgument for s in specs] == [False, True, True, True]
    assert program.module()(torch.ones(2, 3))[1:] == (3, None, "text")


def test_parts_of_a_result_are_nodes():
    program = function(lambda x: x.split(2)[1], torch.ones(4))
    assert [n.target for n in program.graph.nodes if n.op == "call_function"][1:2] == [
        operator.getitem]


def test_sizes_are_nodes():
    program = function(lambda x: x.reshape(-1) * x.shape[0], torch.ones(3, 2),
                       dynamic_shapes=({0: Dim("n")},))
    assert any("sym_size" in str(n.target) for n in program.graph.nodes)
    assert program.module()(torch.ones(5, 2)).tolist() == [5.0] * 10
    static = function(lambda x: x * x.shape[0], torch.ones(3, 2))
    assert not any("sym_size" in str(n.target) for n in static.graph.nodes)


def test_results_of_other_types_are_refused():
    with pytest.raises(RuntimeError, match="Found <class 'object'> in output, which is not a kn"):
        function(lambda x: object(), torch.ones(1))
