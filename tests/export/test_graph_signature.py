"""What inputs and outputs of a graph are."""
from export_cases import Stateful

import flambeau as torch
from flambeau.export import export


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
