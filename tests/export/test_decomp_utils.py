"""Tables of decompositions."""
import flambeau as torch
from flambeau import nn
from flambeau.export import default_decompositions, export


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
